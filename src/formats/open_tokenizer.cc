#include "formats/open_tokenizer.h"

#include <filesystem>
#include <optional>

#include "base/check.h"
#include "formats/gguf.h"
#include "formats/tokenizer_gguf.h"
#include "formats/tokenizer_hf.h"
#include "formats/tokenizer_sentencepiece.h"

namespace kvick {

Result<Tokenizer> OpenTokenizer(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const fs::path json = is_folder ? fs::path(path) / "tokenizer.json" : fs::path(path);
  if (!is_folder && json.extension() != ".json") {
    KVICK_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
    return TokenizerFromGguf(file);
  }
  if (is_folder && !fs::exists(json, ignored) &&
      fs::exists(fs::path(path) / "tokenizer.model", ignored)) {
    return TokenizerFromSentencePiece(path);
  }
  const fs::path config = json.parent_path() / "tokenizer_config.json";
  return TokenizerFromHf(json.string(), fs::exists(config, ignored)
                                            ? std::optional<std::string>(config.string())
                                            : std::nullopt);
}

}  // namespace kvick
