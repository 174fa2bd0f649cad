#include "formats/regex.h"

#include <oniguruma.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

constexpr size_t kMaxPatternBytes = size_t{64} << 10;
constexpr int kMaxNesting = 200;

// Steps of the first try of a search, which is free; one that needs more is repeated with twice as
// many. So none is charged more than some four times what it needs.
constexpr uint64_t kFirstSteps = 64;
constexpr uint64_t kBaseSteps = 1'000'000, kStepsPerByte = 256;

constexpr std::chrono::seconds kBaseTime{2};
constexpr std::chrono::microseconds kTimePerByte{10};
constexpr uint32_t kStartsPerClock = 16;

// A callout before the expression, at each start of a match: only there a search can be stopped
// that scans ahead without backtracking. The option, which is off anyway, keeps the expression
// apart from it: its first character repeats nothing, all its alternatives follow.
constexpr std::string_view kStartCallout = "(?{})(?-i)";

// Entries of some 40 bytes; a repeated character class takes one for each character.
constexpr uint64_t kBaseStackEntries = 100'000, kStackEntriesPerByte = 8;

const OnigUChar* Bytes(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

std::string OnigMessage(int code, OnigErrorInfo* info) {
  OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = onig_error_code_to_str(message, code, info);
  return std::string(reinterpret_cast<char*>(message), static_cast<size_t>(std::max(length, 0)));
}

// How deep brackets are nested, at most: those of Oniguruma's recursive parser and more.
int MaxNesting(std::string_view pattern) {
  int depth = 0, deepest = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') ++i;
    if (c == '(' || c == '[') deepest = std::max(deepest, ++depth);
    if ((c == ')' || c == ']') && depth > 0) --depth;
  }
  return deepest;
}

Status CheckPattern(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return Fail(ErrorCode::kUnsupported, "regular expression: expected at most {} bytes, got {}",
                kMaxPatternBytes, pattern.size());
  }
  if (const int nesting = MaxNesting(pattern); nesting > kMaxNesting) {
    return Fail(ErrorCode::kUnsupported,
                "regular expression: expected at most {} nested brackets, got {}", kMaxNesting,
                nesting);
  }
  return {};
}

// Oniguruma 6.9.9 gave [:punct:] the symbols on top, which the files rely on: writes them out for
// older versions. A class in a bracket may be a bracket itself.
std::string WithSymbolsInPunct(std::string_view pattern) {
  constexpr std::string_view kPunct = "[:punct:]", kNoPunct = "[:^punct:]";
  std::string result;
  int depth = 0;
  for (size_t i = 0; i < pattern.size();) {
    const std::string_view rest = pattern.substr(i);
    if (depth > 0 && rest.starts_with(kPunct)) {
      result += "[[:punct:]\\p{S}]";
      i += kPunct.size();
      continue;
    }
    if (depth > 0 && rest.starts_with(kNoPunct)) {
      result += "[^[:punct:]\\p{S}]";
      i += kNoPunct.size();
      continue;
    }
    if (rest[0] == '[') ++depth;
    if (rest[0] == ']' && depth > 0) --depth;
    const size_t length = rest[0] == '\\' ? std::min<size_t>(2, rest.size()) : 1;
    result += rest.substr(0, length);
    i += length;
  }
  return result;
}

bool InitializeOnce() {
  static const bool ok = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1) == ONIG_NORMAL;
  }();
  return ok;
}

tl::unexpected<Error> WorkExhausted() {
  return Fail(ErrorCode::kExhausted,
              "the tokenizer's regular expression needs too much work for this text");
}

}  // namespace

struct RegexWork::Buffers {
  Buffers(RegexWork& work, unsigned max_stack_entries)
      : region(onig_region_new()), param(onig_new_match_param()) {
    if (param == nullptr) return;
    onig_initialize_match_param(param);
    onig_set_match_stack_limit_size_of_match_param(param, max_stack_entries);
    onig_set_progress_callout_of_match_param(param, [](OnigCalloutArgs*, void* user_data) -> int {
      return static_cast<RegexWork*>(user_data)->StartMatch() ? ONIG_CALLOUT_SUCCESS : ONIG_ABORT;
    });
    onig_set_callout_user_data_of_match_param(param, &work);
  }
  ~Buffers() {
    if (region != nullptr) onig_region_free(region, 1);
    if (param != nullptr) onig_free_match_param(param);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  OnigRegion* region;
  OnigMatchParam* param;
};

RegexWork::RegexWork(size_t text_bytes)
    : text_bytes_(text_bytes),
      steps_left_(kBaseSteps + kStepsPerByte * text_bytes),
      deadline_(std::chrono::steady_clock::now() + kBaseTime +
                kTimePerByte * static_cast<int64_t>(text_bytes)) {}
RegexWork::~RegexWork() = default;

Status RegexWork::AllocateBuffers() {
  if (!buffers_) {
    const uint64_t entries = kBaseStackEntries + kStackEntriesPerByte * text_bytes_;
    buffers_ = std::make_unique<Buffers>(
        *this, static_cast<unsigned>(std::min<uint64_t>(entries, std::numeric_limits<int>::max())));
  }
  if (buffers_->region != nullptr && buffers_->param != nullptr) return {};
  return Fail(ErrorCode::kExhausted, "cannot allocate memory for regular expressions");
}

Status RegexWork::Spend(uint64_t steps) {
  if (steps > steps_left_) return WorkExhausted();
  steps_left_ -= steps;
  return {};
}

bool RegexWork::HasTime() const { return std::chrono::steady_clock::now() <= deadline_; }

bool RegexWork::StartMatch() { return ++num_starts_ % kStartsPerClock != 0 || HasTime(); }

struct Regex::Compiled {
  explicit Compiled(OnigRegex r) : regex(r) {}
  ~Compiled() { onig_free(regex); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  OnigRegex regex;
};

Result<Regex> Regex::Compile(std::string_view pattern) {
  KVICK_RETURN_IF_ERROR(CheckPattern(pattern));
  if (!InitializeOnce()) {
    return Fail(ErrorCode::kInternal, "cannot initialize the regular expression library");
  }
  OnigRegex regex = nullptr;
  OnigErrorInfo info{};
  const std::string source = std::string(kStartCallout) + WithSymbolsInPunct(pattern);
  const int code = onig_new(&regex, Bytes(source), Bytes(source) + source.size(), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL) {
    return Fail(ErrorCode::kCorrupt, "cannot compile the regular expression: {}",
                OnigMessage(code, &info));
  }
  Regex result;
  result.compiled_ = std::make_shared<const Compiled>(regex);
  return result;
}

Status Regex::FindAll(std::string_view text, RegexWork& work,
                      std::vector<TextSpan>& matches) const {
  if (text.empty()) return {};
  KVICK_RETURN_IF_ERROR(work.AllocateBuffers());
  constexpr size_t kNone = SIZE_MAX;
  size_t last_end = kNone;
  for (size_t from = 0; from <= text.size();) {
    KVICK_RETURN_IF_ERROR(Search(text, from, work));
    const OnigRegion& region = *work.buffers_->region;
    if (region.num_regs == 0 || region.beg[0] == ONIG_REGION_NOTPOS) return {};
    const auto begin = static_cast<size_t>(region.beg[0]);
    const auto end = static_cast<size_t>(region.end[0]);
    if (begin < from || end < begin) {
      return Fail(ErrorCode::kUnsupported,
                  "regular expression: expected matches from left to right, got one that begins at "
                  "byte {} and ends at byte {} of a search from byte {}",
                  begin, end, from);
    }
    if (begin == end && last_end == end) {
      if (from == text.size()) return {};
      from += NextUtf8(text.substr(from)).num_bytes;
      continue;
    }
    matches.push_back({begin, end});
    from = last_end = end;
  }
  return {};
}

// Leaves what it found in the region of `work`: its first entry is the match, if there is one.
Status Regex::Search(std::string_view text, size_t from, RegexWork& work) const {
  const OnigUChar *begin = Bytes(text), *end = begin + text.size();
  OnigRegion* region = work.buffers_->region;
  OnigMatchParam* param = work.buffers_->param;
  KVICK_RETURN_IF_ERROR(work.Spend(1));
  for (uint64_t steps = kFirstSteps;; steps *= 2) {
    onig_set_retry_limit_in_match_of_match_param(param, steps);
    onig_set_retry_limit_in_search_of_match_param(param, steps);
    onig_region_clear(region);
    const int result = onig_search_with_param(compiled_->regex, begin, end, begin + from, end,
                                              region, ONIG_OPTION_NONE, param);
    if (result >= 0) return {};
    switch (result) {
      case ONIG_MISMATCH:
        onig_region_clear(region);
        return {};
      case ONIG_ABORT:
      case ONIGERR_MATCH_STACK_LIMIT_OVER:
      case ONIGERR_MEMORY:
        return WorkExhausted();
      case ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER:
      case ONIGERR_RETRY_LIMIT_IN_MATCH_OVER:
        break;
      default:
        return Fail(ErrorCode::kUnsupported, "cannot match the tokenizer's regular expression: {}",
                    OnigMessage(result, nullptr));
    }
    KVICK_RETURN_IF_ERROR(work.Spend(2 * steps));
    if (!work.HasTime()) return WorkExhausted();
  }
}

}  // namespace kvick
