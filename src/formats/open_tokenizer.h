#ifndef KVICK_FORMATS_OPEN_TOKENIZER_H_
#define KVICK_FORMATS_OPEN_TOKENIZER_H_

#include <string>

#include "formats/tokenizer.h"
#include "kvick/status.h"

namespace kvick {

// The tokenizer of a GGUF file, with or without weights, of a Hugging Face folder that has a
// tokenizer.json or else a tokenizer.model, or of a tokenizer.json itself.
// Errors: not_found: no such file, or no tokenizer in it;  io, corrupt, unsupported.
Result<Tokenizer> OpenTokenizer(const std::string& path);

}  // namespace kvick

#endif  // KVICK_FORMATS_OPEN_TOKENIZER_H_
