#ifndef KVICK_APPS_KVICK_BATCH_REQUEST_H_
#define KVICK_APPS_KVICK_BATCH_REQUEST_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "kvick/engine.h"
#include "kvick/model.h"
#include "kvick/status.h"
#include "line_reader.h"

namespace kvick::cli {

// A line of a batch: what it is called, and what it asks for or why that cannot be.
struct BatchRequest {
  nlohmann::json id;  // a string or an integer, by default the line's number; null: not to be read
  int64_t line = 0;
  std::optional<std::string> prompt_text;  // in place of request.prompt
  GenerateRequest request;
  std::optional<Error> error;
};

// What `kvick batch --help` says about the members of a line.
inline constexpr char kBatchLineHelp[] =
    "A line of the input is an object with \"prompt\" (a text) or \"tokens\" (ids), and if "
    "wanted:\n"
    "  id                  string or integer, unlike all others; default: the line's number\n"
    "  max_tokens          default 128; -1: until the context is full\n"
    "  temperature, top_k, top_p, min_p, repetition_penalty, seed\n"
    "                      as of `kvick generate`, with its defaults\n"
    "  logit_bias          {\"token id\": number}, added to the logit\n"
    "  n                   texts of this prompt, with seeds seed, seed + 1, ...; default 1\n"
    "  stop                a text, or a list of them, that ends the answer before it\n"
    "  ignore_eos          true: go on after a token that ends a text\n"
    "  namespace           prompts are compared, to be computed once, within one namespace alone\n";

// Reads all of a line but its prompt's tokens. Errors are the request's.
BatchRequest ParseBatchRequest(const Line& line);

// Turns prompt_text into request.prompt. Errors: not_found: the model has no tokenizer.
Status EncodePrompt(const Model& model, BatchRequest& request);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BATCH_REQUEST_H_
