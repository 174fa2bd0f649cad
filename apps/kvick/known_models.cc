#include "known_models.h"

#include <algorithm>

namespace kvick::cli {
namespace {

// name, layers, hidden, intermediate, heads, kv heads, head dim, vocabulary, context, tied
constexpr KnownModel kModels[] = {
    {"llama-2-7b", 32, 4096, 11008, 32, 32, 128, 32000, 4096, false},
    {"llama-2-13b", 40, 5120, 13824, 40, 40, 128, 32000, 4096, false},
    {"llama-2-70b", 80, 8192, 28672, 64, 8, 128, 32000, 4096, false},
    {"llama-3-8b", 32, 4096, 14336, 32, 8, 128, 128256, 8192, false},
    {"llama-3-70b", 80, 8192, 28672, 64, 8, 128, 128256, 8192, false},
    {"llama-3.1-8b", 32, 4096, 14336, 32, 8, 128, 128256, 131072, false},
    {"llama-3.1-70b", 80, 8192, 28672, 64, 8, 128, 128256, 131072, false},
    {"llama-3.1-405b", 126, 16384, 53248, 128, 8, 128, 128256, 131072, false},
    {"llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, 131072, true},
    {"llama-3.2-3b", 28, 3072, 8192, 24, 8, 128, 128256, 131072, true},
    {"llama-3.3-70b", 80, 8192, 28672, 64, 8, 128, 128256, 131072, false},
    {"tinyllama-1.1b", 22, 2048, 5632, 32, 4, 64, 32000, 2048, false},
};

}  // namespace

std::span<const KnownModel> KnownModels() { return kModels; }

const KnownModel* FindKnownModel(std::string_view name) {
  const auto found = std::find_if(std::begin(kModels), std::end(kModels),
                                  [&](const KnownModel& model) { return model.name == name; });
  return found == std::end(kModels) ? nullptr : found;
}

}  // namespace kvick::cli
