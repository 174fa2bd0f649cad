#ifndef KVICK_FORMATS_TOKENIZER_HF_STEP_H_
#define KVICK_FORMATS_TOKENIZER_HF_STEP_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/check.h"
#include "formats/json_members.h"
#include "formats/text_pattern.h"
#include "kvick/status.h"

namespace kvick {

// What the readers of a tokenizer.json's steps have in common.

// Where a chain of steps stands in the document, and the name of a list of them in a Sequence.
struct HfChain {
  const char* key;
  const char* sequence_key;
};

// Calls `read(step, type)` for each step of the chain, in order; a Sequence is its steps.
// Errors  those of `read`; corrupt: a step without type;  unsupported: more than 64 steps
template <class Read>
Status ForEachHfStep(const nlohmann::json& tokenizer, HfChain chain, Read read);

// Errors  unsupported: always; names the step and the known ones.
tl::unexpected<Error> UnsupportedHfStep(const JsonMembers& step, std::string_view type,
                                        std::string_view known);

// The pattern of a Replace or Split: {"String": ...} or {"Regex": ...}.
Result<TextPattern> ReadHfPattern(const JsonMembers& step);

// A member that is exactly one character.
Result<std::string> ReadHfCharacter(const JsonMembers& step, std::string_view key,
                                    std::string_view fallback);

class HfStepCounter {
 public:
  Status Count(std::string_view key);

 private:
  int num_steps_ = 0;
};

template <class Read>
Status ForEachHfStepIn(const nlohmann::json& value, HfChain chain, HfStepCounter& counter,
                       Read& read) {
  const JsonMembers step(value, chain.key);
  KVICK_RETURN_IF_ERROR(counter.Count(chain.key));
  KVICK_ASSIGN_OR_RETURN(const std::string type, step.String("type"));
  if (type != "Sequence") return read(step, std::string_view(type));
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* inner_steps, step.Array(chain.sequence_key));
  for (const nlohmann::json& inner : *inner_steps) {
    KVICK_RETURN_IF_ERROR(ForEachHfStepIn(inner, chain, counter, read));
  }
  return {};
}

template <class Read>
Status ForEachHfStep(const nlohmann::json& tokenizer, HfChain chain, Read read) {
  const nlohmann::json* step = JsonMembers(tokenizer).Find(chain.key);
  if (step == nullptr) return {};
  HfStepCounter counter;
  return ForEachHfStepIn(*step, chain, counter, read);
}

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_HF_STEP_H_
