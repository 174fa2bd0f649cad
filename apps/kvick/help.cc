#include "help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "terminal.h"

namespace kvick::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kNameColumns = 28;  // of an option or a verb, with the space before it

// A name on the left, what it is on the right; below it where the name is long.
std::string Entry(const std::string& name, std::string_view description) {
  std::string out = "  " + name;
  if (out.size() + 2 > kNameColumns) {
    out.append("\n").append(kNameColumns, ' ');
  } else {
    out.append(kNameColumns - out.size(), ' ');
  }
  return out + Wrapped(description, kNameColumns) + "\n";
}

// What CLI11 calls a type, and what the checks of the option say about it.
struct Kind {
  std::string type;
  std::string range;
};

Kind KindOf(const CLI::Option& option) {
  static const std::map<std::string, std::string, std::less<>> kNames = {
      {"INT", "N"}, {"UINT", "N"}, {"FLOAT", "X"}};
  const std::string text = option.get_type_name();
  const size_t colon = std::min(text.find(':'), text.size());
  Kind kind{text.substr(0, colon), text.substr(std::min(colon + 1, text.size()))};
  if (const auto name = kNames.find(kind.type); name != kNames.end()) kind.type = name->second;
  return kind;
}

std::string NameOf(const CLI::Option& option) {
  std::string name = option.get_name(false, true);  // "-m,--model"
  if (const size_t comma = name.find(','); comma != std::string::npos) name.insert(comma + 1, " ");
  if (name.starts_with("--")) name.insert(0, 4, ' ');
  if (const std::string type = KindOf(option).type; !type.empty()) name += " " + type;
  return name;
}

std::string DescriptionOf(const CLI::Option& option) {
  std::vector<std::string> notes;
  if (option.get_required()) notes.emplace_back("required");
  if (const std::string range = KindOf(option).range; !range.empty()) notes.push_back(range);
  if (const std::string value = option.get_default_str(); !value.empty()) {
    notes.push_back("default " + value);
  }
  for (const CLI::Option* other : option.get_excludes()) {
    notes.push_back("not with " + other->get_name());
  }
  if (notes.empty()) return option.get_description();
  return fmt::format("{} ({})", option.get_description(), fmt::join(notes, "; "));
}

std::string UsageLine(const CLI::App& app, const std::string& name) {
  std::string line = "Usage: " + name;
  const bool has_verbs = !app.get_subcommands(nullptr).empty();
  line += has_verbs ? " VERB [options]" : " [options]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const bool is_hidden = option->get_group().empty();  // get_name() says nothing of these
    const std::string word = is_hidden ? option->get_single_name() : option->get_name(true, false);
    line += option->get_required() ? " " + word : " [" + word + "]";
  }
  return line + "\n";
}

std::string Verbs(const CLI::App& app) {
  std::string out;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    const std::string description = verb->get_description();
    out += Entry(verb->get_name(), description.substr(0, description.find('\n')));
  }
  return out.empty() ? out : "\nVerbs:\n" + out;
}

std::string Options(const CLI::App& app, const std::string& group) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() != group || option == app.get_help_ptr()) continue;
    const bool is_word = !option->nonpositional();
    out += Entry(is_word ? option->get_name(true, false) : NameOf(*option), DescriptionOf(*option));
  }
  return out.empty() ? out : fmt::format("\n{}:\n{}", group, out);
}

}  // namespace

std::string Wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (column > indent && column + 1 + word.size() > kColumns) {
      out.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

void AddExample(CLI::App& app, const std::string& command) {
  app.description(app.get_description() + "\n\nExample: " + command);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode /*mode*/) const {
  std::string out = app->get_description() + "\n\n" + UsageLine(*app, name) + Verbs(*app);
  for (const std::string& group : app->get_groups()) {
    if (!group.empty()) out += Options(*app, group);
  }
  if (const std::string footer = app->get_footer(); !footer.empty()) out += "\n" + footer + "\n";
  return out;
}

std::string UsageSentence(const CLI::App& verb, const CLI::ParseError& error) {
  if (const std::vector<std::string> extras = verb.remaining(); !extras.empty()) {
    const bool is_option = extras.front().starts_with('-');
    const bool takes_prompt = verb.get_option_no_throw("PROMPT") != nullptr;
    return fmt::format("unexpected argument {}{}", ShownName(extras.front()),
                       !is_option && takes_prompt ? "; put a prompt into quotes" : "");
  }
  std::string text = error.what();
  if (const size_t at = text.find(" excludes "); at != std::string::npos) {
    text.replace(at, std::string_view(" excludes ").size(), " cannot be combined with ");
  }
  return text;
}

}  // namespace kvick::cli
