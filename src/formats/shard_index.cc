#include "formats/shard_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return c > 0x20 && c < 0x7f && c != '/' && c != '\\';
  });
}

}  // namespace

Result<ShardIndex> ShardIndexFromJson(const nlohmann::json& index) {
  KVICK_ASSIGN_OR_RETURN(const auto* weight_map, JsonMembers(index).Object("weight_map"));
  ShardIndex shard_of;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string() || !IsPlainFileName(shard.get_ref<const std::string&>())) {
      return Fail(ErrorCode::kCorrupt,
                  "the file of tensor {}: expected the name of a file in this folder, got {}",
                  Quoted(tensor), JsonText(shard));
    }
    shard_of.emplace(tensor, shard.get<std::string>());
  }
  return shard_of;
}

}  // namespace kvick
