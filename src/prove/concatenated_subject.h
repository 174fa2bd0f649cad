#ifndef KVICK_PROVE_CONCATENATED_SUBJECT_H_
#define KVICK_PROVE_CONCATENATED_SUBJECT_H_

#include <cstdint>
#include <memory>

#include "kvick/model.h"
#include "kvick/status.h"
#include "prove/subject.h"

namespace kvick {

// The cache as it is often written first: keys and values of a layer in one tensor each, and every
// step makes new ones, one row longer, and copies the old into them.
class ConcatenatedSubject : public Subject {
 public:
  static Result<std::unique_ptr<ConcatenatedSubject>> Create(const Model& model,
                                                             const SubjectOptions& options);
  ConcatenatedSubject();
  ~ConcatenatedSubject() override;

  Status Begin() override;
  Status Feed(std::span<const int32_t> tokens, std::span<float> logits) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Token rows that growing one tensor from nothing to num_tokens, a row at a time, copies: done, and
// counted.
int64_t CountCopiedRows(int64_t num_tokens);

}  // namespace kvick

#endif  // KVICK_PROVE_CONCATENATED_SUBJECT_H_
