#ifndef KVICK_MODEL_ARCH_READ_SPEC_H_
#define KVICK_MODEL_ARCH_READ_SPEC_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "kvick/status.h"
#include "model/arch/architecture.h"
#include "model/model_spec.h"

namespace kvick {

// From a config.json of one of Architectures(). A missing key has the default of transformers.
// `source` names the file in messages.
// Errors: corrupt: a field missing, of another type, out of range, or at odds with another;
//         unsupported: another architecture, rope scaling, activation, a quantized checkpoint, or a
//         key that would change the numbers and that the architecture does not have.
Result<ModelSpec> ModelSpecFromHf(const nlohmann::json& config,
                                  std::string_view source = "config.json");

// The end-of-sequence tokens of a generation_config.json; nullopt where it names none. An id that
// is not in the vocabulary is left out: such a token never comes.
// Errors: corrupt: a value that is no token id.
Result<std::optional<std::vector<int32_t>>> EosIdsFromHf(
    const nlohmann::json& generation_config, int64_t vocab_size,
    std::string_view source = "generation_config.json");

// From a GGUF of one of Architectures(), with or without tensors. The size of the vocabulary is the
// length of the token list. ARCHITECTURE.vocab_size and the rows of the embedding must agree with
// it where they are present: llama.cpp pads the list when it converts a padded embedding, so that a
// shorter list is a damaged file.
// Errors: as ModelSpecFromHf; unsupported: one file of a split model.
Result<ModelSpec> ModelSpecFromGguf(const GgufFile& file);

// The parts that both formats share.
//
// Sets all sizes but that of the vocabulary, and the epsilon of the norms.
Status ReadSizes(const ConfigFields& fields, const Architecture& architecture, ModelSpec& spec);
// What an architecture adds, once the sizes are there; then refuses what nobody has read.
Status DescribeLayers(const ConfigFields& fields, const Architecture& architecture,
                      ModelSpec& spec);

}  // namespace kvick

#endif  // KVICK_MODEL_ARCH_READ_SPEC_H_
