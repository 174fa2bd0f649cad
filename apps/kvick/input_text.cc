#include "input_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "descriptor.h"
#include "formats/json.h"
#include "formats/quoted.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

constexpr size_t kMaxTextBytes = size_t{256} << 20;  // /dev/zero has no end
constexpr std::string_view kSeparators = " \t\r\n,";

Result<std::string> ReadAll(int fd, const std::string& name) {
  constexpr size_t kReadBytes = size_t{64} << 10;
  std::string text;
  while (text.size() <= kMaxTextBytes) {
    const size_t num_before = text.size();
    text.resize(num_before + kReadBytes);
    const ssize_t num_read = read(fd, text.data() + num_before, kReadBytes);
    const int error = errno;
    text.resize(num_before + static_cast<size_t>(std::max<ssize_t>(num_read, 0)));
    if (num_read == 0) return text;
    if (num_read > 0 || error == EINTR) continue;
    return Fail(ErrorCode::kIo, "{}: cannot read: {}", name, std::strerror(error));
  }
  return Fail(ErrorCode::kExhausted, "{}: expected at most {} bytes, got more", name,
              kMaxTextBytes);
}

tl::unexpected<Error> NotTokens(std::string_view got) {
  return Fail(ErrorCode::kInvalidArgument, "expected token ids, as in 1,403,407, got {}", got);
}

Result<std::vector<int32_t>> ParseTokenArray(std::string_view text) {
  const Result<nlohmann::json> array = ParseJson(text, "");
  if (!array) return NotTokens(Quoted(text));
  std::vector<int32_t> tokens;
  for (const nlohmann::json& id : *array) {
    const bool is_token = id.is_number_unsigned()
                              ? std::in_range<int32_t>(id.get<uint64_t>())
                              : id.is_number_integer() && std::in_range<int32_t>(id.get<int64_t>());
    if (!is_token) return NotTokens(JsonText(id));
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

}  // namespace

Result<std::string> ReadText(const std::string& path) {
  if (path == "-") return ReadAll(STDIN_FILENO, "stdin");
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Fail(ErrorCode::kInvalidArgument, "{}: expected a file, got a folder", ShownName(path));
  }
  KVICK_ASSIGN_OR_RETURN(const Descriptor file, Descriptor::Open(path, O_RDONLY));
  return ReadAll(file.fd(), ShownName(path));
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

Result<std::string> ReadPrompt(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return Fail(ErrorCode::kUnsupported, "{}: expected UTF-8, got UTF-16", ShownName(path));
  }
  std::string prompt;
  for (std::string_view rest = WithoutByteOrderMark(text); !rest.empty();) {
    const size_t line_end = std::min(rest.find("\r\n"), rest.size());
    prompt += rest.substr(0, line_end);
    rest.remove_prefix(std::min(line_end + 1, rest.size()));  // the \n begins what comes next
  }
  if (prompt.ends_with('\n')) prompt.pop_back();
  return prompt;
}

Result<std::vector<int32_t>> ParseTokens(std::string_view text) {
  const std::string_view all = text;
  const auto skip = [&text](std::string_view characters) {
    text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
  };
  skip(" \t\r\n");
  if (text.starts_with('[')) return ParseTokenArray(text);
  std::vector<int32_t> tokens;
  while (true) {
    int32_t token = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, token);
    const bool is_number =
        error == std::errc() && (stop == end || kSeparators.find(*stop) != std::string_view::npos);
    if (!is_number) {
      const size_t word = text.find_first_of(kSeparators);
      return NotTokens(Quoted(word == 0 || text.empty() ? all : text.substr(0, word)));
    }
    tokens.push_back(token);
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
    skip(" \t\r\n");
    if (text.empty()) return tokens;
    if (!text.starts_with(',')) continue;
    text.remove_prefix(1);
    skip(" \t\r\n");
  }
}

Result<std::vector<int32_t>> ReadTokens(const std::string& option) {
  if (!option.starts_with('@')) return ParseTokens(option);
  const std::string path = option.substr(1);
  KVICK_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  Result<std::vector<int32_t>> tokens = ParseTokens(WithoutByteOrderMark(text));
  if (tokens) return tokens;
  return Fail(tokens.error().code, "{}: {}", ShownName(path), tokens.error().message);
}

CLI::Validator TokensCheck() {
  return CLI::Validator(
      [](std::string& option) -> std::string {
        if (option.starts_with('@')) return "";
        const auto tokens = ParseTokens(option);
        return tokens ? "" : tokens.error().message;
      },
      "");
}

}  // namespace kvick::cli
