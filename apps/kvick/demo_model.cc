#include "demo_model.h"

#include <cstddef>
#include <span>

#include "base/check.h"
#include "formats/gguf.h"
#include "formats/open_tokenizer.h"
#include "formats/tokenizer_gguf.h"

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

extern const char kDemoHashes[];

namespace {

std::span<const std::byte> DemoBytes() { return {kvick_demo_model_begin, kvick_demo_model_end}; }

}  // namespace

std::string_view DemoLogitsHashes() { return kDemoHashes; }

Result<std::unique_ptr<Model>> OpenModel(const std::string& path) {
  if (!path.empty()) return Model::Open(path);
  return Model::Parse(DemoBytes(), kDemoModelName);
}

Result<Tokenizer> OpenModelTokenizer(const std::string& path) {
  if (!path.empty()) return OpenTokenizer(path);
  KVICK_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Parse(DemoBytes(), kDemoModelName));
  return TokenizerFromGguf(file);
}

}  // namespace kvick::cli
