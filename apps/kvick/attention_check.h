#ifndef KVICK_APPS_KVICK_ATTENTION_CHECK_H_
#define KVICK_APPS_KVICK_ATTENTION_CHECK_H_

#include <cstdint>
#include <span>

#include "kvick/attention.h"
#include "kvick/status.h"

namespace kvick::cli {

// Holds what Attention computed for the last token of a view to the double-precision reference,
// within a bound from the rounding errors of the formula.
//
// Shapes  q, out [H, D] of that token
// Errors  internal: further off
// Cost    one query head of each KV head is looked at, a second for 100,000 positions
Status CheckAttention(const AttentionConfig& config, int64_t layer, const KvView& kv,
                      std::span<const float> q, std::span<const float> out);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_ATTENTION_CHECK_H_
