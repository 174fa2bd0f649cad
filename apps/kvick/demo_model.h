#ifndef KVICK_APPS_KVICK_DEMO_MODEL_H_
#define KVICK_APPS_KVICK_DEMO_MODEL_H_

#include <memory>
#include <string>
#include <string_view>

#include "formats/tokenizer.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick::cli {

// Stands where the path of a model would.
inline constexpr char kDemoModelName[] = "the demo model";

// The model at `path`, or its tokenizer alone. An empty path is the demo model that the program
// carries (data/README.md). Errors: as Model::Open, kvick::OpenTokenizer.
Result<std::unique_ptr<Model>> OpenModel(const std::string& path);
Result<Tokenizer> OpenModelTokenizer(const std::string& path);

// SHA-256 of the logits of the demo model, as ProveOptions::recorded_hashes (data/README.md).
std::string_view DemoLogitsHashes();

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_DEMO_MODEL_H_
