// kvick: runs Llama-family models through a cache that never changes an answer.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli.h"
#include "kvick/attention.h"
#include "version.h"
#include "wake_pipe.h"

namespace kvick::cli {
namespace {

constexpr int kWrongUse = 2;
constexpr int kStoppedBySignal = 128;  // and its number, as a shell would say

std::string VersionText() {
  std::string text = fmt::format("kvick {} ({})\nimplementations (--isa):\n", kVersion, kCommit);
  for (const IsaInfo& isa : KnownIsas()) {
    text += fmt::format("  {} {:13} {}\n", isa.is_default ? '*' : ' ', isa.name,
                        isa.is_available ? isa.description : "not on this machine");
  }
  text += "  * is what auto takes";
  return text;
}

// CLI11 takes one letter after one dash; -ctk is llama.cpp's name for the option.
std::vector<std::string> Arguments(int argc, char** argv) {
  constexpr std::string_view kShort = "-ctk", kLong = "--cache-type-k";
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    if (argument == kShort || argument.rfind("-ctk=", 0) == 0) {
      argument.replace(0, kShort.size(), kLong);
    }
  }
  return {arguments.rbegin(), arguments.rend()};  // CLI11 takes them from the back
}

// A word that stands where a verb is wanted and names none.
struct UnknownVerb {
  std::string word;
  std::string program;  // what lists the verbs
};

std::optional<UnknownVerb> FindUnknownVerb(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  std::string program = app.get_name();
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::vector<const CLI::App*> verbs = at->get_subcommands(nullptr);
    if (verbs.empty()) break;
    const auto verb = std::find_if(verbs.begin(), verbs.end(),
                                   [&](const CLI::App* v) { return v->get_name() == argv[i]; });
    if (verb == verbs.end()) return UnknownVerb{argv[i], program};
    at = *verb;
    program.append(" ").append(argv[i]);
  }
  return std::nullopt;
}

// What was printed may still wait, and may have nowhere to go.
Status FlushOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return Fail(ErrorCode::kIo, "stdout: what was to be printed could not be written");
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

int Run(int argc, char** argv) {
  CLI::App app("Runs Llama-family models through a KV cache that never changes an answer.",
               "kvick");
  app.set_version_flag("--version", VersionText);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  const auto add = [&](const char* name, const char* job, Verb (*add_options)(CLI::App&)) {
    CLI::App* verb = app.add_subcommand(name, job);
    verbs.emplace_back(verb, add_options(*verb));
  };
  add("generate", "complete a text", AddGenerate);
  add("batch", "complete many texts, from a file into a file", AddBatch);
  add("prove", "show that the cache changes no answer, and what it costs", AddProve);
  add("bench", "how near the kernels come to the limits of this machine", AddBench);
  add("plan", "what the caches of a model cost, contiguous and paged", AddPlan);
  add("logits", "write the logits of every position to a .npy file", AddLogits);
  add("tokenize", "turn text into token ids, or back", AddTokenize);
  add("inspect", "show what a model file holds and what its cache costs", AddInspect);
  if (const auto unknown = FindUnknownVerb(app, argc, argv)) {
    Note(fmt::format("no verb is called {}, `{} --help` lists them", unknown->word,
                     unknown->program));
    return kWrongUse;
  }
  try {
    app.parse(Arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) != 0) return kWrongUse;
    return std::cout.flush() ? 0 : 1;  // --help and --version
  }
  for (const auto& [verb, run] : verbs) {
    if (!verb->parsed()) continue;
    Status status = run();
    if (status) status = FlushOutput();
    if (status) return 0;
    Note(status.error().message);
    return status.error().code == ErrorCode::kCancelled ? kStoppedBySignal + CaughtSignal() : 1;
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
  } catch (const std::exception& error) {  // out of memory, in the main
    kvick::cli::Note(error.what());
    return 1;
  }
}
