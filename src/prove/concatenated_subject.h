#ifndef KVICK_PROVE_CONCATENATED_SUBJECT_H_
#define KVICK_PROVE_CONCATENATED_SUBJECT_H_

#include <cstdint>
#include <memory>

#include "kvick/model.h"
#include "kvick/status.h"
#include "prove/subject.h"

namespace kvick {

// A cache as it is often written first: one tensor for the keys and one for the values of a layer.
// Every step allocates new tensors, one row longer, and copies the old ones into them.
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

// Grows a tensor from nothing to num_tokens, one row at a time, and returns how many rows this
// copied.
int64_t CountCopiedRows(int64_t num_tokens);

}  // namespace kvick

#endif  // KVICK_PROVE_CONCATENATED_SUBJECT_H_
