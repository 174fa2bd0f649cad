#ifndef KVICK_FORMATS_GGUF_PRETOKENIZERS_H_
#define KVICK_FORMATS_GGUF_PRETOKENIZERS_H_

#include <string>
#include <string_view>
#include <vector>

namespace kvick {

// What a value of tokenizer.ggml.pre stands for.
struct GgufPreTokenizer {
  std::vector<std::string_view> names;  ///< values of the key; the models named by them are alike
  std::vector<std::string> patterns;    ///< see PreTokenizer
  bool whole_words_first = false;       ///< a word that is a piece needs no merges
  bool add_bos = false;                 ///< where tokenizer.ggml.add_bos_token is missing
};

// Null for a name that is not known. What it points to is never destroyed.
const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name);

}  // namespace kvick

#endif  // KVICK_FORMATS_GGUF_PRETOKENIZERS_H_
