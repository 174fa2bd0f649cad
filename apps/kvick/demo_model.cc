#include "demo_model.h"

#include <cstddef>
#include <span>

// The bytes of data/demo.gguf. KVICK_DEMO_MODEL is its path, in quotes.
asm(R"(
  .section .rodata
  .balign 64
  .global kvick_demo_model_begin
  .global kvick_demo_model_end
kvick_demo_model_begin:
  .incbin )" KVICK_DEMO_MODEL R"(
kvick_demo_model_end:
  .previous
)");

extern "C" const std::byte kvick_demo_model_begin[];
extern "C" const std::byte kvick_demo_model_end[];

namespace kvick::cli {

Result<std::unique_ptr<Model>> OpenModel(const std::string& path) {
  if (!path.empty()) return Model::Open(path);
  return Model::Parse({kvick_demo_model_begin, kvick_demo_model_end}, kDemoModelName);
}

}  // namespace kvick::cli
