#ifndef KVICK_BASE_TENSOR_CHECK_H_
#define KVICK_BASE_TENSOR_CHECK_H_

#include <initializer_list>
#include <string_view>

#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

// Holds a view to a documented shape: f32, row-major, no gaps. `name` begins the sentence.
// Errors: invalid_argument.
Status CheckDense(std::string_view name, const TensorView& view,
                  std::initializer_list<int64_t> shape);

}  // namespace kvick

#endif  // KVICK_BASE_TENSOR_CHECK_H_
