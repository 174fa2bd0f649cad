#ifndef KVICK_BASE_TENSOR_CHECK_H_
#define KVICK_BASE_TENSOR_CHECK_H_

#include <initializer_list>
#include <string_view>

#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

// Holds a view to a documented shape: f32, not null, the innermost dimension without gaps, the
// others with any stride. `name` begins the sentence. Errors: invalid_argument.
Status CheckShape(std::string_view name, const TensorView& view,
                  std::initializer_list<int64_t> shape);

// The same, and row-major without any gaps.
Status CheckDense(std::string_view name, const TensorView& view,
                  std::initializer_list<int64_t> shape);

}  // namespace kvick

#endif  // KVICK_BASE_TENSOR_CHECK_H_
