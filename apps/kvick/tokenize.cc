// kvick tokenize: text to token ids, and back.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli.h"
#include "formats/json.h"
#include "formats/open_tokenizer.h"

namespace kvick::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  bool jsonl = false;
  bool no_special = false;
  bool decode = false;
  bool json = false;
};

EncodeOptions ToEncodeOptions(const TokenizeOptions& options) {
  return {.add_special = !options.no_special, .parse_special = !options.no_special};
}

Result<std::vector<int32_t>> IdsOf(const nlohmann::json& value, std::string_view label) {
  std::vector<int32_t> ids;
  for (const nlohmann::json& id : value) {
    if (!value.is_array() || !id.is_number_integer() || id < INT32_MIN || id > INT32_MAX) {
      return Fail(ErrorCode::kInvalidArgument, "{}: a list of token ids is wanted", label);
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// {"text": ...} -> [ids], or with --decode {"ids": [...]} or [...] -> {"text": ...}.
Status TokenizeLine(const Tokenizer& tokenizer, const TokenizeOptions& options,
                    const std::string& line, const std::string& label) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json input, ParseJson(line, label));
  if (options.decode) {
    const bool is_object = input.is_object() && input.contains("ids");
    KVICK_ASSIGN_OR_RETURN(const auto ids, IdsOf(is_object ? input["ids"] : input, label));
    PrintJson({{"text", tokenizer.Decode(ids)}});
    return {};
  }
  if (!input.is_object() || !input.contains("text") || !input["text"].is_string()) {
    return Fail(ErrorCode::kInvalidArgument, "{}: an object with a string \"text\" is wanted",
                label);
  }
  const auto& text = input["text"].get_ref<const std::string&>();
  KVICK_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         tokenizer.Encode(text, ToEncodeOptions(options)));
  PrintJson(nlohmann::json(ids));
  return {};
}

Status TokenizeLines(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  int64_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    if (line.empty()) continue;
    KVICK_RETURN_IF_ERROR(
        TokenizeLine(tokenizer, options, line, fmt::format("stdin, line {}", number)));
  }
  return {};
}

Status RunTokenize(const TokenizeOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const Tokenizer tokenizer, OpenTokenizer(options.model));
  if (options.jsonl) return TokenizeLines(tokenizer, options);
  KVICK_ASSIGN_OR_RETURN(std::string text, ReadText("-"));
  if (options.decode) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    KVICK_ASSIGN_OR_RETURN(const auto ids, ParseTokens(text));
    const std::string decoded = tokenizer.Decode(ids);
    if (options.json) {
      PrintJson({{"text", decoded}});
    } else {
      std::fwrite(decoded.data(), 1, decoded.size(), stdout);
    }
    return {};
  }
  KVICK_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         tokenizer.Encode(text, ToEncodeOptions(options)));
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
  app.add_option("-m,--model", options->model,
                 "GGUF file (its vocabulary is enough), Hugging Face folder, or tokenizer.json")
      ->required();
  auto* jsonl = app.add_flag("--jsonl", options->jsonl,
                             "each line {\"text\": ...} of stdin gives a line [ids]");
  app.add_flag("--no-special", options->no_special,
               "add no BOS, and take <s> in the text for three characters");
  app.add_flag("--decode", options->decode, "ids on stdin to text; with --jsonl, lines of [ids]");
  app.add_flag("--json", options->json, "print one JSON object")->excludes(jsonl);
  app.footer("Example: printf 'Once upon a time' | kvick tokenize -m model.gguf");
  return [options] { return RunTokenize(*options); };
}

}  // namespace kvick::cli
