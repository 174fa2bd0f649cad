#ifndef KVICK_FORMATS_TOKENIZER_HF_H_
#define KVICK_FORMATS_TOKENIZER_HF_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "formats/tokenizer.h"
#include "kvick/status.h"

namespace kvick {

// The tokenizer of a Hugging Face folder: tokenizer.json with a BPE model, and what
// tokenizer_config.json says on top. It gives the ids of the tokenizers library; docs/formats.md
// lists the steps, and what is different for text that is not UTF-8.
//
// Errors  not_found, io: a file;  unsupported: another model or step, named;
//         corrupt: not JSON, a missing key, a wrong type, an id twice or out of range
Result<Tokenizer> TokenizerFromHf(const std::string& tokenizer_path,
                                  const std::optional<std::string>& config_path);

// The same from JSON values; `config` is null where there is none.
Result<Tokenizer> TokenizerFromHfJson(const nlohmann::json& tokenizer,
                                      const nlohmann::json& config);

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_HF_H_
