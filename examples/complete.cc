#include <cstdio>

#include "kvick/engine.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto model = kvick::Model::Open(argv[1]);
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  auto engine = kvick::Engine::Create(**model, {.context_tokens = 512});
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;

  kvick::GenerateRequest request;
  request.prompt = (*model)->Encode(argv[2]).value_or(std::vector<int32_t>{1});
  request.max_new_tokens = 100;
  auto results = (*engine)->Generate({&request, 1});
  if (!results) return std::fprintf(stderr, "%s\n", results.error().message.c_str()), 1;
  std::puts((*model)->Decode((*results)[0].tokens).value_or("").c_str());
}
