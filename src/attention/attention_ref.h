#ifndef KVICK_ATTENTION_ATTENTION_REF_H_
#define KVICK_ATTENTION_ATTENTION_REF_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kvick/attention.h"

namespace kvick {

// The formula of Attention::Run in double precision, without chunks, one row after the other.
// q [T, H, D]; returns [T, H, D]. REQUIRES: what Attention::Run checks.
std::vector<double> AttentionRef(const AttentionConfig& config, int64_t layer,
                                 std::span<const AttentionQuery> queries, std::span<const float> q);

}  // namespace kvick

#endif  // KVICK_ATTENTION_ATTENTION_REF_H_
