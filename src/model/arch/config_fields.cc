#include "model/arch/config_fields.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "formats/gguf_value.h"
#include "formats/json.h"

namespace kvick {
namespace {

constexpr int64_t kShownElements = 4;

}  // namespace

std::string ConfigFields::NameOf(FieldName name) const {
  return gguf_ != nullptr ? prefix_ + std::string(name.gguf) : std::string(name.hf);
}

const std::string& ConfigFields::Read(const std::string& name) const {
  return *read_.insert(name).first;
}

bool ConfigFields::Has(FieldName name) const {
  return gguf_ != nullptr ? HasValue(name) : json_->Has(NameOf(name));
}

bool ConfigFields::HasValue(FieldName name) const {
  const std::string key = NameOf(name);
  return gguf_ != nullptr ? gguf_->Find(key) != nullptr : json_->Find(key) != nullptr;
}

std::string ConfigFields::Label(FieldName name) const {
  if (json_ != nullptr) return json_->Label(NameOf(name));
  return fmt::format("{}: {}", gguf_->source(), NameOf(name));
}

Result<int64_t> ConfigFields::Int(FieldName name, IntRange range) const {
  const std::string& key = Read(NameOf(name));
  if (json_ != nullptr) return json_->Int(key, range);
  KVICK_ASSIGN_OR_RETURN(const int64_t value, gguf_->GetInt(key));
  KVICK_RETURN_IF_ERROR(CheckRange(Label(name), value, range));
  return value;
}

Result<int64_t> ConfigFields::IntOr(FieldName name, IntRange range, int64_t fallback) const {
  Read(NameOf(name));
  if (!HasValue(name)) return fallback;
  return Int(name, range);
}

Result<double> ConfigFields::Float(FieldName name, FloatRange range) const {
  const std::string& key = Read(NameOf(name));
  if (json_ != nullptr) return json_->Float(key, range);
  KVICK_ASSIGN_OR_RETURN(const double value, gguf_->GetFloat(key));
  KVICK_RETURN_IF_ERROR(CheckRange(Label(name), value, range));
  return value;
}

Result<double> ConfigFields::FloatOr(FieldName name, FloatRange range, double fallback) const {
  Read(NameOf(name));
  if (!HasValue(name)) return fallback;
  return Float(name, range);
}

Result<bool> ConfigFields::BoolOr(FieldName name, bool fallback) const {
  const std::string& key = Read(NameOf(name));
  if (json_ != nullptr) return json_->BoolOr(key, fallback);
  KVICK_ASSIGN_OR_RETURN(const auto value, gguf_->FindBool(key));
  return value.value_or(fallback);
}

Result<std::string> ConfigFields::StringOr(FieldName name, std::string_view fallback) const {
  const std::string& key = Read(NameOf(name));
  if (json_ != nullptr) return json_->StringOr(key, fallback);
  KVICK_ASSIGN_OR_RETURN(const auto value, gguf_->FindString(key));
  return std::string(value.value_or(fallback));
}

Result<std::vector<std::string>> ConfigFields::StringsOrNone(FieldName name) const {
  std::vector<std::string> strings;
  const std::string& key = Read(NameOf(name));
  if (json_ == nullptr || json_->Find(key) == nullptr) return strings;
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* array, json_->Array(key));
  for (const nlohmann::json& element : *array) {
    if (!element.is_string()) {
      return Fail(ErrorCode::kCorrupt, "{}: expected strings, got {}", Label(name),
                  JsonText(element));
    }
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

Result<std::vector<int64_t>> ConfigFields::IntsOrNone(FieldName name, IntRange range) const {
  std::vector<int64_t> ints;
  const std::string& key = Read(NameOf(name));
  if (json_ == nullptr || json_->Find(key) == nullptr) return ints;
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* array, json_->Array(key));
  for (const nlohmann::json& element : *array) {
    KVICK_ASSIGN_OR_RETURN(const int64_t value, JsonInt(element, Label(name), range));
    ints.push_back(value);
  }
  return ints;
}

std::string ConfigFields::Text(FieldName name) const {
  if (json_ != nullptr) return JsonText(*json_->Find(NameOf(name)));
  return GgufValueText(*gguf_->Find(NameOf(name)), kShownElements);
}

}  // namespace kvick
