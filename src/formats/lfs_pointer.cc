#include "formats/lfs_pointer.h"

#include "base/check.h"

namespace kvick {

Status CheckNoLfsPointer(std::span<const std::byte> bytes, std::string_view source) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("version https://git-lfs")) return {};
  return Fail(ErrorCode::kCorrupt,
              "{}: expected the file itself, got a Git LFS pointer to it: run `git lfs pull`",
              source);
}

}  // namespace kvick
