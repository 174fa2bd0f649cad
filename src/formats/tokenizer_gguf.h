#ifndef KVICK_FORMATS_TOKENIZER_GGUF_H_
#define KVICK_FORMATS_TOKENIZER_GGUF_H_

#include "formats/gguf.h"
#include "formats/tokenizer.h"
#include "kvick/status.h"

namespace kvick {

// The tokenizer in the metadata of a GGUF file: tokenizer.ggml.model `llama`, `t5` (Unigram), or
// `gpt2` with one of the known tokenizer.ggml.pre (missing: `default`). It encodes as llama.cpp
// does.
//
// Errors    not_found: the file has no tokenizer (model missing or `none`), and nothing else;
//           unsupported: another model or pre;  corrupt: a missing key or a bad value
// Cost      some 200 bytes of memory for each token, 60 for each merge; of the file nothing is kept
Result<Tokenizer> TokenizerFromGguf(const GgufFile& file);

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_GGUF_H_
