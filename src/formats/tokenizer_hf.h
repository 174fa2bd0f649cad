#ifndef KVICK_FORMATS_TOKENIZER_HF_H_
#define KVICK_FORMATS_TOKENIZER_HF_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "formats/tokenizer.h"
#include "kvick/status.h"

namespace kvick {

// The tokenizer of a Hugging Face folder: tokenizer.json with a BPE model, byte-level (GPT-2, Llama
// 3, Qwen 2, SmolLM) or with space markers and byte fallback (Llama 2, Mistral). It encodes as the
// tokenizers library does, except that nothing normalizes to NFC, and that special tokens leave the
// white space beside them alone.
//
// BOS and EOS are named by tokenizer_config.json, and put around a text where the post-processor,
// or add_bos_token and add_eos_token there, say so.
//
// Errors    not_found, io: a file;  unsupported: something else than the above, named;
//           corrupt: not JSON, a missing key, a wrong type, an id twice or out of range
Result<Tokenizer> TokenizerFromHf(const std::string& tokenizer_path,
                                  const std::optional<std::string>& config_path);

// The same from JSON values; `config` is null where there is none.
Result<Tokenizer> TokenizerFromHfJson(const nlohmann::json& tokenizer,
                                      const nlohmann::json& config);

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_HF_H_
