#ifndef KVICK_FORMATS_TOKENIZER_HF_CONFIG_H_
#define KVICK_FORMATS_TOKENIZER_HF_CONFIG_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "formats/json_members.h"
#include "formats/tokenizer_data.h"
#include "formats/tokenizer_hf_vocabulary.h"
#include "kvick/status.h"

namespace kvick {

// What a tokenizer_config.json says beside the tokenizer.json that was read: tokens that it adds or
// whose flags it changes, as transformers does; which of them are BOS and EOS; and whether those
// are put around a text. The last is for the classes that replace the post-processor of
// tokenizer.json (Llama, Code Llama, Gemma, Cohere), and for a file that names no class; for others
// the post-processor decides.
//
// Errors  corrupt: a member of a wrong type
Status ReadHfConfig(const nlohmann::json& config, HfVocabularyReader& vocabulary,
                    TokenizerData& data);

// All tokens that the config calls special, whatever for: bos_token, ...,
// additional_special_tokens. Errors  corrupt: a member of a wrong type
Result<std::vector<AddedToken>> ReadHfNamedTokens(const JsonMembers& config);

// How many tokens the config may add.
size_t NumHfConfigTokens(const nlohmann::json& config);

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_HF_CONFIG_H_
