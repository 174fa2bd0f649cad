#ifndef KVICK_APPS_KVICK_HELP_H_
#define KVICK_APPS_KVICK_HELP_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>

namespace kvick::cli {

// `text` in lines of at most 80 columns, all but the first indented; a longer word has a line of
// its own. Single spaces stand between the words.
std::string Wrapped(std::string_view text, size_t indent);

// Adds an example to the description of a verb: --help shows it first.
void AddExample(CLI::App& app, const std::string& command);

// --help: description, usage, options by group, footer, in lines of at most 80 columns. An option
// shows what it takes, its range and its default as people write them.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

// What is wrong with the arguments of `verb`, as one sentence without its end.
std::string UsageSentence(const CLI::App& verb, const CLI::ParseError& error);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_HELP_H_
