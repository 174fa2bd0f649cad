#ifndef KVICK_APPS_KVICK_NOTES_H_
#define KVICK_APPS_KVICK_NOTES_H_

#include <string>
#include <string_view>

#include "engine/context_size.h"
#include "kvick/engine.h"
#include "kvick/model.h"

// What verbs say on stderr about a run that goes on.
namespace kvick::cli {

// If memory limits the context, or the user asks for more than the model was made for.
void NoteContext(
    const ContextSize& context, const ModelInfo& info,
    std::string_view why_capped = "the cache takes at most half of the free memory (-c sets it)");

// What a result says of logits that were NaN.
std::string NanWarning(const NanLogits& nan_logits);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_NOTES_H_
