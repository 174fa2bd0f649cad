#ifndef KVICK_FORMATS_TOKENIZER_HF_STEPS_H_
#define KVICK_FORMATS_TOKENIZER_HF_STEPS_H_

#include <nlohmann/json.hpp>

#include "formats/tokenizer_data.h"
#include "kvick/status.h"

namespace kvick {

// Each reads one chain of steps of a tokenizer.json into `data`, alone or in a Sequence; where the
// file has none, the chain is empty. docs/formats.md lists the steps.
//
// Errors  unsupported: an unknown step, named;  corrupt: a missing or wrong member
Status ReadHfNormalizer(const nlohmann::json& tokenizer, TokenizerData& data);
Status ReadHfPreTokenizer(const nlohmann::json& tokenizer, TokenizerData& data);

// Sets prefix_ids and suffix_ids.
Status ReadHfPostProcessor(const nlohmann::json& tokenizer, TokenizerData& data);

// Where the file has no decoder, undoes what normalizer and pre-tokenizer, which have to be read
// before, do to spaces and bytes.
Status ReadHfDecoder(const nlohmann::json& tokenizer, TokenizerData& data);

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_HF_STEPS_H_
