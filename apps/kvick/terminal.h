#ifndef KVICK_APPS_KVICK_TERMINAL_H_
#define KVICK_APPS_KVICK_TERMINAL_H_

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

// What the program prints for people, and JSON for programs.
namespace kvick::cli {

// A name from the command line as a terminal or a page can show it: as it is, or quoted and escaped
// where it holds control characters or is no UTF-8.
std::string ShownName(const std::string& name);

// One JSON object on a line of stdout. Bytes that are no UTF-8 become U+FFFD.
void PrintJson(const nlohmann::json& object);

// One sentence on stderr: "kvick: ...". What was printed to stdout before is written first; what a
// terminal would obey is escaped.
void Note(std::string_view sentence);

// Whether `fd` is a terminal that takes escape sequences: not with TERM=dumb.
bool IsSmartTerminal(int fd);
// The same for colours, which NO_COLOR turns off (no-color.org).
bool ShowsColors(int fd);

// A line on stderr that changes while something takes longer than a second; only on a terminal.
class StatusLine {
 public:
  StatusLine() = default;
  ~StatusLine() { Clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  static bool is_possible();
  // Whether it is time for another text.
  bool is_due() const;
  void Show(std::string_view text);
  void Clear();  // leaves the line empty, as it was

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point started_ = Clock::now();
  Clock::time_point shown_;
  bool is_shown_ = false;
};

// "name  12/345" as a status line.
class Progress {
 public:
  explicit Progress(std::string name) : name_(std::move(name)) {}

  void Show(int64_t num_done, int64_t num_total);
  void Clear() { line_.Clear(); }

 private:
  std::string name_;
  StatusLine line_;
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_TERMINAL_H_
