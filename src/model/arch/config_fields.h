#ifndef KVICK_MODEL_ARCH_CONFIG_FIELDS_H_
#define KVICK_MODEL_ARCH_CONFIG_FIELDS_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "formats/json_members.h"
#include "formats/range.h"
#include "kvick/status.h"

namespace kvick {

// A number of a model by its two names: in a GGUF file, where it follows "ARCHITECTURE.", and in
// config.json. A name is empty where that format has no such number.
struct FieldName {
  std::string_view gguf;
  std::string_view hf;
};

// The numbers of a model, from either format, and which of them were asked for. In config.json a
// member that is null counts as missing.
//
// Errors  corrupt: missing, of another type, out of range, or a number that is not finite
class ConfigFields {
 public:
  // `file` and `config` must outlive it.
  ConfigFields(const GgufFile& file, std::string_view architecture)
      : gguf_(&file), prefix_(std::string(architecture) + ".") {}
  explicit ConfigFields(const JsonMembers& config) : json_(&config) {}

  // Exactly one of the two is not null.
  const GgufFile* gguf() const { return gguf_; }
  const JsonMembers* json() const { return json_; }

  // Whether there is a value, or, of config.json, at least a null.
  bool Has(FieldName name) const;
  bool HasValue(FieldName name) const;
  bool WasRead(FieldName name) const { return read_.contains(NameOf(name)); }
  // "model.gguf: llama.block_count", "num_hidden_layers"
  std::string Label(FieldName name) const;

  Result<int64_t> Int(FieldName name, IntRange range) const;
  Result<int64_t> IntOr(FieldName name, IntRange range, int64_t fallback) const;
  Result<double> Float(FieldName name, FloatRange range) const;
  Result<double> FloatOr(FieldName name, FloatRange range, double fallback) const;
  Result<bool> BoolOr(FieldName name, bool fallback) const;
  Result<std::string> StringOr(FieldName name, std::string_view fallback) const;
  // An array of strings or of integers, as far as JSON goes; empty where there is none.
  Result<std::vector<std::string>> StringsOrNone(FieldName name) const;
  Result<std::vector<int64_t>> IntsOrNone(FieldName name, IntRange range) const;
  // The value for messages. REQUIRES: HasValue(name).
  std::string Text(FieldName name) const;

 private:
  std::string NameOf(FieldName name) const;
  const std::string& Read(const std::string& name) const;

  const GgufFile* gguf_ = nullptr;
  const JsonMembers* json_ = nullptr;
  std::string prefix_;                  // of a GGUF file: "llama."
  mutable std::set<std::string> read_;  // names that were asked for
};

}  // namespace kvick

#endif  // KVICK_MODEL_ARCH_CONFIG_FIELDS_H_
