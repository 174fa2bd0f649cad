#include "terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "formats/quoted.h"

namespace kvick::cli {
namespace {

// On stderr. Where it cannot be written, nothing happens.
void PrintAside(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string ShownName(const std::string& name) { return IsPrintable(name) ? name : Quoted(name); }

void PrintJson(const nlohmann::json& object) {
  const std::string line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

void Note(std::string_view sentence) {
  std::fflush(stdout);
  if (IsPrintable(sentence)) return PrintAside(fmt::format("kvick: {}\n", sentence));
  const std::string quoted = Quoted(sentence, sentence.size());
  PrintAside(fmt::format("kvick: {}\n", quoted.substr(1, quoted.size() - 2)));
}

bool IsSmartTerminal(int fd) {
  const std::string_view terminal = Environment("TERM");
  return isatty(fd) == 1 && !terminal.empty() && terminal != "dumb";
}

bool ShowsColors(int fd) { return IsSmartTerminal(fd) && Environment("NO_COLOR").empty(); }

bool StatusLine::is_possible() {
  static const bool is_smart = IsSmartTerminal(STDERR_FILENO);
  return is_smart;
}

bool StatusLine::is_due() const {
  const Clock::time_point now = Clock::now();
  if (!is_possible() || now - started_ < std::chrono::seconds(1)) return false;
  return !is_shown_ || now - shown_ >= std::chrono::milliseconds(100);
}

void StatusLine::Show(std::string_view text) {
  PrintAside(fmt::format("\r\033[K{}", text));
  shown_ = Clock::now();
  is_shown_ = true;
}

void StatusLine::Clear() {
  if (is_shown_) PrintAside("\r\033[K");
  is_shown_ = false;
}

void Progress::Show(int64_t num_done, int64_t num_total) {
  if (line_.is_due()) line_.Show(fmt::format("{}  {}/{}", name_, num_done, num_total));
}

}  // namespace kvick::cli
