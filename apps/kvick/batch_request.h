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

// What tells a request from all others of its batch: its id, or the number of its line where it has
// none. Results repeat it.
struct RequestKey {
  nlohmann::json id;    // a string or an integer, by default the line's number
  int64_t line = 0;     // of the input, from 1
  bool has_id = false;  // false: `id` comes from the line's number
};

// A line of a batch: its key, and what it asks for or what is wrong with it.
struct BatchRequest {
  RequestKey key;
  std::optional<std::string> prompt_text;  // in place of request.prompt
  TextOptions text_options;                // of prompt_text
  GenerateRequest request;
  std::optional<Error> error;
};

// What `kvick batch --help` says about the members of a line.
inline constexpr char kBatchLineHelp[] =
    "A line of the input is a JSON object with \"prompt\" (a text) or \"tokens\" (token\n"
    "ids). Optional members; one that is null counts as missing:\n"
    "  id              string or integer, unique in the file; default: the number of\n"
    "                  the line\n"
    "  max_tokens      maximum new tokens, also called max_completion_tokens; -1:\n"
    "                  until the context is full (default 128)\n"
    "  temperature, top_k, top_p, min_p, repetition_penalty, seed\n"
    "                  as the options of kvick generate, with their defaults\n"
    "  logit_bias      {\"token id\": number}, added to the logits of these tokens\n"
    "  n               number of completions, with seeds seed, seed + 1, ...\n"
    "                  (default 1)\n"
    "  stop            a stop string, or a list of them: a completion ends before it\n"
    "  ignore_eos      true: go on after an end-of-sequence token\n"
    "  parse_special   false: control tokens that the prompt spells, such as </s>,\n"
    "                  are plain characters (default true)\n"
    "  cache_salt      only requests with the same salt share cached prompts; the\n"
    "                  time to the first token tells nothing about other requests\n";

// Reads a line, except that a text stays a text. Errors are the request's.
BatchRequest ParseBatchRequest(const Line& line);

// Turns prompt_text into request.prompt. Errors: those of Model::Encode.
Status EncodePrompt(const Model& model, BatchRequest& request);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BATCH_REQUEST_H_
