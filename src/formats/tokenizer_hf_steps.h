#ifndef KVICK_FORMATS_TOKENIZER_HF_STEPS_H_
#define KVICK_FORMATS_TOKENIZER_HF_STEPS_H_

#include <nlohmann/json.hpp>

#include "formats/tokenizer_data.h"
#include "kvick/status.h"

namespace kvick {

// Reads what a tokenizer.json does around its model, each of these alone or in a Sequence:
//
//   normalizer      Prepend and Replace of space markers; NFC, which is left out
//   pre_tokenizer   ByteLevel, Split, Digits, Metaspace
//   post_processor  TemplateProcessing (for single texts); ByteLevel, which moves offsets alone
//
// Sets spelling, split_patterns, space_prefix, strips_leading_space, prefix_ids and suffix_ids.
//
// Errors    unsupported: any other step, named;  corrupt: a missing or wrong member
Status ReadSteps(const nlohmann::json& tokenizer, TokenizerData& data);

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_HF_STEPS_H_
