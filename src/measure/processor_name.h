#ifndef KVICK_MEASURE_PROCESSOR_NAME_H_
#define KVICK_MEASURE_PROCESSOR_NAME_H_

#include <string>

namespace kvick {

// The name of the first processor, as in "Intel(R) Xeon(R) ..."; empty if the system does not tell.
std::string ProcessorName();

}  // namespace kvick

#endif  // KVICK_MEASURE_PROCESSOR_NAME_H_
