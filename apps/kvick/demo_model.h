#ifndef KVICK_APPS_KVICK_DEMO_MODEL_H_
#define KVICK_APPS_KVICK_DEMO_MODEL_H_

#include <memory>
#include <string>

#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick::cli {

// How the model in the box is called where a path would stand.
inline constexpr char kDemoModelName[] = "the demo model";

// The model at `path`; with an empty one, the model that the program carries (data/README.md).
Result<std::unique_ptr<Model>> OpenModel(const std::string& path);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_DEMO_MODEL_H_
