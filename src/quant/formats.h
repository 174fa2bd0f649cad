#ifndef KVICK_QUANT_FORMATS_H_
#define KVICK_QUANT_FORMATS_H_

#include "quant/weight_format.h"

namespace kvick {

// The quantized formats, a source file each, which states the layout of a block.
extern const WeightFormat kQ4_0Format, kQ4_1Format, kQ5_0Format, kQ5_1Format, kQ8_0Format;
extern const WeightFormat kQ2_KFormat, kQ3_KFormat, kQ4_KFormat, kQ5_KFormat, kQ6_KFormat;
extern const WeightFormat kIQ4_NLFormat, kIQ4_XSFormat;

}  // namespace kvick

#endif  // KVICK_QUANT_FORMATS_H_
