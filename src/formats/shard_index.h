#ifndef KVICK_FORMATS_SHARD_INDEX_H_
#define KVICK_FORMATS_SHARD_INDEX_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kvick/status.h"

namespace kvick {

// Tensor name -> name of the file that holds it, which cannot lead out of its folder: printable
// ASCII without spaces, no separators, no dot at its start.
using ShardIndex = std::map<std::string, std::string>;

// Of a model.safetensors.index.json: {"weight_map": {tensor: file}}.
// Errors    corrupt: anything else
Result<ShardIndex> ShardIndexFromJson(const nlohmann::json& index);

}  // namespace kvick

#endif  // KVICK_FORMATS_SHARD_INDEX_H_
