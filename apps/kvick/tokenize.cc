// kvick tokenize: text to token ids, and back.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "cli.h"
#include "demo_model.h"
#include "formats/json.h"
#include "help.h"
#include "input_text.h"
#include "line_reader.h"
#include "options.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  Words words;
  std::vector<std::string> prompts;
  std::string prompt_file;
  bool jsonl = false;
  bool no_special = false;
  bool no_parse_special = false;
  bool decode = false;
  bool json = false;

  // Takes what the words say. Throws CLI::ParseError.
  void Complete();
  // The text that the command line names; else all of stdin, as it is.
  Result<std::string> Text() const;
  EncodeOptions ToEncodeOptions() const {
    return {.add_special = !no_special, .parse_special = !no_special && !no_parse_special};
  }
};

void TokenizeOptions::Complete() {
  if (const std::optional<std::string> text = words.TakeText(model)) prompts.push_back(*text);
  const size_t num_texts = prompts.size() + (prompt_file.empty() ? 0 : 1);
  if (num_texts > 1 || (jsonl && num_texts > 0)) {
    throw CLI::ValidationError(
        "expected one text: a word in quotes, --prompt, --file, or what stdin gives");
  }
}

Result<std::string> TokenizeOptions::Text() const {
  if (!prompts.empty()) return prompts.front();
  return prompt_file.empty() ? ReadText("-") : ReadPrompt(prompt_file);
}

tl::unexpected<Error> Invalid(std::string_view label, std::string_view expected) {
  return Fail(ErrorCode::kInvalidArgument, "{}: expected {}", label, expected);
}

// Errors: invalid_argument: an id that is no token.
Result<std::string> Decode(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) continue;
    return Fail(ErrorCode::kInvalidArgument, "token id: expected 0 to {}, got {}",
                tokenizer.vocab_size() - 1, id);
  }
  return tokenizer.Decode(ids);
}

// {"text": ...} -> [ids], or with --decode {"ids": [...]} or [...] -> {"text": ...}.
Result<nlohmann::json> TokenizeLine(const Tokenizer& tokenizer, const TokenizeOptions& options,
                                    std::string_view line, const std::string& label) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json input, ParseJson(line, label));
  if (options.decode) {
    const bool has_ids = input.is_object() && input.contains("ids");
    const nlohmann::json& list = has_ids ? input["ids"] : input;
    const auto ids = list.is_array() ? ParseTokens(list.dump()) : std::vector<int32_t>();
    if (!list.is_array() || !ids) return Invalid(label, "an array of token ids");
    const Result<std::string> text = Decode(tokenizer, *ids);
    if (!text) return Fail(text.error().code, "{}: {}", label, text.error().message);
    return nlohmann::json{{"text", *text}};
  }
  if (!input.is_object() || !input.contains("text") || !input["text"].is_string()) {
    return Invalid(label, "an object with a string \"text\"");
  }
  const auto& text = input["text"].get_ref<const std::string&>();
  KVICK_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         tokenizer.Encode(text, options.ToEncodeOptions()));
  return nlohmann::json(ids);
}

Status TokenizeLines(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  KVICK_ASSIGN_OR_RETURN(LineReader input, LineReader::Open("-"));
  while (true) {
    const std::optional<Line> line = input.Take();
    if (!line && input.is_at_end()) return {};
    if (!line) {
      KVICK_RETURN_IF_ERROR(input.Read());
      continue;
    }
    const std::string label = fmt::format("stdin, line {}", line->number);
    if (line->is_too_long) {
      return Invalid(label, fmt::format("at most {} bytes", LineReader::kMaxLineBytes));
    }
    if (line->text.find_first_not_of(" \t\r") == std::string::npos) continue;
    KVICK_ASSIGN_OR_RETURN(const nlohmann::json result,
                           TokenizeLine(tokenizer, options, line->text, label));
    PrintJson(result);
  }
}

Status DecodeText(const Tokenizer& tokenizer, const TokenizeOptions& options,
                  const std::string& text) {
  KVICK_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ReadTokens(text));
  KVICK_ASSIGN_OR_RETURN(const std::string decoded, Decode(tokenizer, ids));
  if (options.json) {
    PrintJson({{"text", decoded}});
  } else {
    std::fwrite(decoded.data(), 1, decoded.size(), stdout);
  }
  return {};
}

Status RunTokenize(const TokenizeOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const Tokenizer tokenizer, OpenModelTokenizer(options.model));
  if (options.jsonl) return TokenizeLines(tokenizer, options);
  KVICK_ASSIGN_OR_RETURN(const std::string text, options.Text());
  if (options.decode) return DecodeText(tokenizer, options, text);
  KVICK_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         tokenizer.Encode(text, options.ToEncodeOptions()));
  if (options.json) {
    PrintJson({{"tokens", ids}});
  } else {
    fmt::print("{}\n", fmt::join(ids, ","));
  }
  return {};
}

}  // namespace

Verb AddTokenize(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  AddExample(app, "kvick tokenize model.gguf \"Once upon a time\"");
  options->words.AddTo(app, options->model);
  AddTexts(app, "-p,--prompt", options->prompts, "the text; default: all of stdin");
  app.add_option("-f,--file", options->prompt_file,
                 "read the text from a file as kvick generate does")
      ->type_name("FILE")
      ->check(NotEmpty());
  auto* jsonl = app.add_flag("--jsonl", options->jsonl,
                             "for each line {\"text\": ...} of stdin print a line [ids]");
  app.add_flag("--decode", options->decode,
               "the other way: the text is ids, as in 1,403,407 or @FILE; with --jsonl, lines "
               "[ids] give lines {\"text\": ...}");
  app.add_flag("--no-special", options->no_special,
               "add no tokens such as BOS, and read control tokens that the text spells as plain "
               "characters");
  app.add_flag("--no-parse-special", options->no_parse_special, "only the latter");
  AddJsonFlag(app, options->json)->excludes(jsonl);
  app.footer(
      "A vocabulary without weights is enough: a GGUF file, a Hugging Face folder, or a\n"
      "tokenizer.json.");
  app.callback([options] { options->Complete(); });
  return [options] { return RunTokenize(*options); };
}

}  // namespace kvick::cli
