#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "formats/piece_spelling.h"
#include "formats/tokenizer_hf_step.h"
#include "formats/tokenizer_hf_steps.h"

namespace kvick {
namespace {

constexpr std::string_view kKnown =
    "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence or Strip";

class DecoderReader {
 public:
  explicit DecoderReader(Decoder& decoder) : decoder_(decoder) {}

  Status Read(const JsonMembers& step, std::string_view type) {
    if (type == "Strip") return ReadStrip(step);
    if (type == "Fuse") {
      is_fused_ = true;
      return {};
    }
    if (is_fused_) return UnsupportedHfStep(step, type, "Fuse or Strip behind Fuse or ByteLevel");
    KVICK_ASSIGN_OR_RETURN(DecoderStep read, ReadTokenStep(step, type));
    decoder_.steps.push_back(std::move(read));
    if (type == "ByteLevel") is_fused_ = true;
    return {};
  }

 private:
  Result<DecoderStep> ReadTokenStep(const JsonMembers& step, std::string_view type) {
    if (type == "ByteFallback") return ByteFallbackStep{};
    if (type == "ByteLevel") return SpelledBytesStep{};
    if (type == "Replace") {
      KVICK_ASSIGN_OR_RETURN(TextPattern pattern, ReadHfPattern(step));
      KVICK_ASSIGN_OR_RETURN(std::string content, step.String("content"));
      return ReplaceStep{std::move(pattern), std::move(content)};
    }
    if (type == "Metaspace") {
      KVICK_ASSIGN_OR_RETURN(std::string marker,
                             ReadHfCharacter(step, "replacement", kSpaceMarker));
      KVICK_ASSIGN_OR_RETURN(const bool add_space, step.BoolOr("add_prefix_space", true));
      KVICK_ASSIGN_OR_RETURN(const std::string scheme,
                             step.StringOr("prepend_scheme", add_space ? "always" : "never"));
      return UnmarkStep{std::move(marker), scheme != "never"};
    }
    return UnsupportedHfStep(step, type, kKnown);
  }

  // For each token, or, behind Fuse, for the whole text, whose end a stream does not know.
  Status ReadStrip(const JsonMembers& step) {
    constexpr IntRange kCounts{0, std::numeric_limits<int32_t>::max()};
    KVICK_ASSIGN_OR_RETURN(std::string content, ReadHfCharacter(step, "content", " "));
    KVICK_ASSIGN_OR_RETURN(const int64_t start, step.IntOr("start", kCounts, 0));
    KVICK_ASSIGN_OR_RETURN(const int64_t stop, step.IntOr("stop", kCounts, 0));
    if (!is_fused_) {
      decoder_.steps.push_back(StripTokenStep{std::move(content), static_cast<size_t>(start),
                                              static_cast<size_t>(stop)});
      return {};
    }
    if (stop != 0) {
      return Fail(ErrorCode::kUnsupported, "{}: expected 0 behind Fuse, got {}", step.Label("stop"),
                  stop);
    }
    if (start > 0 && decoder_.max_start_strips > 0) {
      return Fail(ErrorCode::kUnsupported, "{}: expected one Strip behind Fuse, got two",
                  step.Label("start"));
    }
    if (start > 0) decoder_.strip_content = std::move(content);
    decoder_.max_start_strips = std::max(decoder_.max_start_strips, static_cast<size_t>(start));
    return {};
  }

  Decoder& decoder_;
  bool is_fused_ = false;
};

template <class Step, class Steps>
const Step* FindStep(const Steps& steps) {
  for (const auto& step : steps) {
    if (const auto* found = std::get_if<Step>(&step)) return found;
  }
  return nullptr;
}

// What undoes the steps before the model.
Result<Decoder> DefaultDecoder(const TokenizerData& data) {
  Decoder decoder;
  const auto* byte_level = FindStep<ByteLevelStep>(data.pretokenizer);
  if (byte_level != nullptr || FindStep<SpellBytesStep>(data.normalizer) != nullptr) {
    decoder.steps.push_back(SpelledBytesStep{});
    return decoder;
  }
  KVICK_ASSIGN_OR_RETURN(TextPattern marker, TextPattern::FromString(std::string(kSpaceMarker)));
  decoder.steps.push_back(ReplaceStep{std::move(marker), " "});
  decoder.steps.push_back(ByteFallbackStep{});
  const auto* prepend = FindStep<PrependStep>(data.normalizer);
  const auto* metaspace = FindStep<MetaspaceStep>(data.pretokenizer);
  if (prepend != nullptr || (metaspace != nullptr && metaspace->scheme != PrependScheme::kNever)) {
    decoder.strip_content = " ";
    decoder.max_start_strips = 1;
  }
  return decoder;
}

}  // namespace

Status ReadHfDecoder(const nlohmann::json& tokenizer, TokenizerData& data) {
  if (JsonMembers(tokenizer).Find("decoder") == nullptr) {
    KVICK_ASSIGN_OR_RETURN(data.decoder, DefaultDecoder(data));
    return {};
  }
  DecoderReader reader(data.decoder);
  return ForEachHfStep(
      tokenizer, {"decoder", "decoders"},
      [&](const JsonMembers& step, std::string_view type) { return reader.Read(step, type); });
}

}  // namespace kvick
