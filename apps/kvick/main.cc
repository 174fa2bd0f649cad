// kvick: runs Llama-family models through a cache that never changes an answer.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/exec.h"
#include "cli.h"
#include "help.h"
#include "kvick/exec.h"
#include "terminal.h"
#include "version.h"
#include "wake_pipe.h"

namespace kvick::cli {
namespace {

constexpr char kCannotWrite[] = "stdout: cannot write all of the output";
constexpr int kStoppedBySignal = 128;  // and its number, as a shell would say

std::string VersionText() {
  std::string text = fmt::format("kvick {} ({})\nnumerics: {}\nimplementations (--isa):\n",
                                 kVersion, kCommit, NumericsName(MakeExec({}).value()));
  for (const IsaInfo& isa : KnownIsas()) {
    text += fmt::format("  {} {:13} {:10} {}\n", isa.is_default ? '*' : ' ', isa.name, isa.numerics,
                        isa.is_available ? isa.description : "not on this machine");
  }
  text += "  * is what auto takes; those of the same numerics compute the same bits";
  return text;
}

// CLI11 takes one letter after one dash; -ctk is llama.cpp's name for the option. `kvick help VERB`
// is `kvick VERB --help`.
std::vector<std::string> Arguments(int argc, char** argv) {
  constexpr std::string_view kShort = "-ctk", kLong = "--cache-type-k";
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    if (argument == kShort || argument.starts_with("-ctk=")) {
      argument.replace(0, kShort.size(), kLong);
    }
  }
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  return arguments;
}

bool IsHelpOrVersion(const std::string& argument) {
  return argument == "-h" || argument == "--help" || argument == "--version";
}

// The apps of the verbs that `arguments` begin with, from kvick itself on, as far as they are
// known.
std::vector<const CLI::App*> VerbPath(const CLI::App& app, std::span<const std::string> arguments) {
  std::vector<const CLI::App*> path = {&app};
  for (const std::string& argument : arguments) {
    const std::vector<const CLI::App*> verbs = path.back()->get_subcommands(nullptr);
    const auto verb =
        std::ranges::find(verbs, argument, [](const auto* v) { return v->get_name(); });
    if (verb == verbs.end()) break;
    path.push_back(*verb);
  }
  return path;
}

std::string CommandOf(std::span<const CLI::App* const> path) {
  std::string command;
  for (const CLI::App* app : path) command += (command.empty() ? "" : " ") + app->get_name();
  return command;
}

// Says what is wrong where a verb is missing, or is none. False: it is there, or not needed.
bool NoteWrongVerb(const CLI::App& app, std::span<const std::string> arguments) {
  const std::vector<const CLI::App*> path = VerbPath(app, arguments);
  if (path.back()->get_subcommands(nullptr).empty()) return false;
  const std::string command = CommandOf(path);
  if (arguments.size() < path.size()) {
    const std::string help = path.back()->help(CommandOf(std::span(path).first(path.size() - 1)));
    std::fwrite(help.data(), 1, help.size(), stderr);
    return true;
  }
  const std::string& word = arguments[path.size() - 1];
  if (IsHelpOrVersion(word)) return false;
  const bool is_for_generate = path.size() == 1 && (word.find(' ') != std::string::npos ||
                                                    word.ends_with(".gguf") || word[0] == '-');
  Note(fmt::format("expected a verb, got {}{}; `{} --help` lists the verbs", ShownName(word),
                   is_for_generate ? ", as in `kvick generate \"Once upon a time\"`" : "",
                   command));
  return true;
}

// What was printed may still wait, and may have nowhere to go.
Status FlushOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return Fail(ErrorCode::kIo, "{}", kCannotWrite);
}

// A stream that was closed is one that nothing comes from and nothing may go to, not the next file
// that happens to be opened.
void HoldStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int held = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    KVICK_CHECK(held == fd);  // the lowest that is free
  }
}

// The verbs that were asked for, from kvick itself on.
std::vector<const CLI::App*> ParsedPath(const CLI::App& app) {
  std::vector<const CLI::App*> path = {&app};
  while (true) {
    const std::vector<CLI::App*> verbs = path.back()->get_subcommands();
    if (verbs.empty()) return path;
    path.push_back(verbs.front());
  }
}

int ReportParse(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != 0) {
    const std::vector<const CLI::App*> path = ParsedPath(app);
    Note(fmt::format("{} (see `{} --help`)", UsageSentence(*path.back(), error), CommandOf(path)));
    return kWrongUse;
  }
  const bool is_help = error.get_name() == "CallForHelp";
  const std::string text = is_help ? app.help() : VersionText() + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  const Status status = FlushOutput();
  if (status) return 0;
  Note(status.error().message);
  return kFailure;
}

constexpr char kFooter[] =
    "kvick VERB --help shows the options of a verb, with an example.\n\n"
    "Exit codes:\n"
    "  0        success\n"
    "  1        failure; one sentence on stderr says why\n"
    "  2        a wrong command line: an unknown option, or a value out of its range\n"
    "  3        bench --strict: a row that cannot be trusted\n"
    "  128 + N  stopped in order by signal N, as Ctrl-C stops a batch";

int Run(int argc, char** argv) {
  CLI::App app("Runs Llama-family models through a KV cache that never changes an answer.",
               "kvick");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "show this help");
  app.set_version_flag("--version", VersionText, "show version and kernel implementations");
  app.require_subcommand(1);
  AddExample(app, "kvick generate \"Once upon a time\"");
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  const auto add = [&](const char* name, const char* job, Verb (*add_options)(CLI::App&)) {
    CLI::App* verb = app.add_subcommand(name, job);
    verbs.emplace_back(verb, add_options(*verb));
  };
  add("generate", "Complete a prompt.", AddGenerate);
  add("batch", "Run many requests from a file.", AddBatch);
  add("prove", "Show that the cache changes no answer, and what it costs.", AddProve);
  add("bench", "Measure kernels and models against the limits of this machine.", AddBench);
  add("plan", "Compute how much memory the cache of a model takes.", AddPlan);
  add("logits", "Write the logits of every position to a .npy file.", AddLogits);
  add("tokenize", "Turn text into token ids, or ids into text.", AddTokenize);
  add("inspect", "Show what a model file contains.", AddInspect);
  app.footer(kFooter);  // last, as verbs inherit it
  std::vector<std::string> arguments = Arguments(argc, argv);
  if (NoteWrongVerb(app, arguments)) return kWrongUse;
  try {
    std::ranges::reverse(arguments);  // CLI11 takes them from the back
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return ReportParse(app, error);
  }
  for (const auto& [verb, run] : verbs) {
    if (!verb->parsed()) continue;
    Outcome outcome = run();
    if (outcome.status) outcome = FlushOutput();
    if (outcome.status) return 0;
    const Error& error = outcome.status.error();
    Note(error.message);
    const bool is_stopped = error.code == ErrorCode::kCancelled;
    return is_stopped ? kStoppedBySignal + CaughtSignal() : outcome.exit_code_of_failure;
  }
  return kWrongUse;
}

}  // namespace
}  // namespace kvick::cli

int main(int argc, char** argv) {
  kvick::cli::HoldStandardStreams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  try {
    return kvick::cli::Run(argc, argv);
  } catch (const std::bad_alloc&) {
    kvick::cli::Note("out of memory");
  } catch (const std::system_error&) {  // of fmt::print
    kvick::cli::Note(kvick::cli::kCannotWrite);
  }
  return kvick::cli::kFailure;
}
