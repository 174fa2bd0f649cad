#include "measure/processor_name.h"

#include <fstream>
#include <string_view>

namespace kvick {

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  constexpr std::string_view kKey = "model name";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(kKey, 0) != 0) continue;
    const size_t begin = line.find_first_not_of(" \t:", kKey.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace kvick
