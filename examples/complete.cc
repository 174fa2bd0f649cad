#include <cstdio>
#include <string>

#include "kvick/engine.h"

// The continuation of a prompt, or the error that prevented it.
kvick::Result<std::string> Complete(const std::string& path, const std::string& text) {
  auto model = kvick::Model::Open(path);
  if (!model) return tl::unexpected(model.error());
  auto engine = kvick::Engine::Create(**model, {.context_tokens = 512});
  if (!engine) return tl::unexpected(engine.error());
  auto prompt = (*model)->Encode(text);
  if (!prompt) return tl::unexpected(prompt.error());

  kvick::GenerateRequest request;
  request.prompt = *prompt;
  request.max_new_tokens = 100;
  auto results = (*engine)->Generate({&request, 1});
  if (!results) return tl::unexpected(results.error());
  const kvick::GenerateResult& result = (*results)[0];
  if (result.error) return tl::unexpected(*result.error);
  return result.text;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto text = Complete(argv[1], argv[2]);
  std::puts(text ? text->c_str() : text.error().message.c_str());
  return text ? 0 : 1;
}
