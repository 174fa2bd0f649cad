#ifndef KVICK_PROVE_PLANTED_BUGS_H_
#define KVICK_PROVE_PLANTED_BUGS_H_

#include <array>
#include <memory>
#include <string_view>

#include "kvick/model.h"
#include "kvick/status.h"
#include "prove/subject.h"

namespace kvick {

// The four classic bugs of a KV cache.
enum class PlantedBug { kRope, kMask, kReset, kHeads };

inline constexpr std::array kPlantedBugs = {PlantedBug::kRope, PlantedBug::kMask,
                                            PlantedBug::kReset, PlantedBug::kHeads};

std::string_view PlantedBugName(PlantedBug bug);         // "rope", "mask", "reset", "heads"
std::string_view PlantedBugDescription(PlantedBug bug);  // how it comes about in practice
// Errors: invalid_argument: unknown name.
Result<PlantedBug> ParsePlantedBug(std::string_view name);

// A model with one of the bugs and a contiguous cache. The library has no switch for bugs: the
// forward pass gets wrong positions, or a KvTarget that misplaces keys and values.
Result<std::unique_ptr<Subject>> MakePlantedSubject(const Model& model, PlantedBug bug,
                                                    const SubjectOptions& options);

}  // namespace kvick

#endif  // KVICK_PROVE_PLANTED_BUGS_H_
