#ifndef KVICK_APPS_KVICK_INPUT_TEXT_H_
#define KVICK_APPS_KVICK_INPUT_TEXT_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/status.h"

// Text and token ids that come from files, pipes and the command line.
namespace kvick::cli {

// A whole file; "-" is stdin. Errors: io; invalid_argument: a folder; exhausted: more than 256 MiB.
Result<std::string> ReadText(const std::string& path);

// A file as its author sees it: without a byte order mark, its lines ended by \n alone, without the
// end of the last line, which is the editor's. Errors: as ReadText; unsupported: UTF-16.
Result<std::string> ReadPrompt(const std::string& path);

// Removes the byte order mark that `text` may begin with.
std::string_view WithoutByteOrderMark(std::string_view text);

// Token ids: numbers between commas or white space, or a JSON array of them. The sentence of an
// error lacks a subject. Errors: invalid_argument.
Result<std::vector<int32_t>> ParseTokens(std::string_view text);

// What --tokens takes: ids as in 1,403,407, or @FILE. Errors: as ReadText, ParseTokens.
Result<std::vector<int32_t>> ReadTokens(const std::string& option);
// The same on the command line: a usage error where the ids are none.
CLI::Validator TokensCheck();

// What --help says of --tokens.
inline constexpr char kTokensHelp[] = "token ids, as in 1,403,407; @FILE reads them from a file";

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_INPUT_TEXT_H_
