// A plain main for the fuzz targets, so that every build of the tests builds and runs them too.
//
//   fuzz_x                      runs some hundreds of mutations of the seeds, always the same ones
//   fuzz_x FILE...              runs these inputs
//   fuzz_x --write-seeds DIR    writes the seeds to files, as a first corpus for libFuzzer

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"

namespace kvick {
namespace {

constexpr int kMutationsPerSeed = 500;

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// Makes one change: a random byte, an extreme number, a truncation, or a repeated part.
void Mutate(std::mt19937& random, std::string& input) {
  if (input.empty()) return;
  const size_t place = random() % input.size();
  switch (random() % 5) {
    case 0:
      input[place] = static_cast<char>(random());
      break;
    case 1: {
      constexpr uint64_t kEdges[] = {
          0,           1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, uint64_t{1} << 62, uint64_t{1} << 63,
          ~uint64_t{0}};
      const uint64_t edge = kEdges[random() % std::size(kEdges)];
      std::memcpy(&input[place], &edge, std::min(sizeof(edge), input.size() - place));
      break;
    }
    case 2:
      input.resize(place);
      break;
    case 3: {
      const size_t num_bytes = random() % 32;
      input.insert(place, input.substr(random() % input.size(), num_bytes));
      break;
    }
    default:
      input.erase(place, random() % 16);
  }
}

void RunMutations() {
  std::mt19937 random(1);
  for (const std::string& seed : FuzzSeeds()) {
    Run(seed);
    for (int i = 0; i < kMutationsPerSeed; ++i) {
      std::string input = seed;
      for (uint32_t left = 1 + random() % 4; left > 0; --left) Mutate(random, input);
      Run(input);
    }
  }
}

int RunFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot read the file\n", path);
    return 1;
  }
  Run({std::istreambuf_iterator<char>(file), {}});
  return 0;
}

void WriteSeeds(const std::string& folder) {
  int seed_idx = 0;
  for (const std::string& seed : FuzzSeeds()) {
    std::ofstream file(folder + "/seed" + std::to_string(seed_idx++), std::ios::binary);
    file.write(seed.data(), static_cast<std::streamsize>(seed.size()));
  }
}

int RunCommand(int argc, char** argv) {
  if (argc == 1) {
    RunMutations();
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--write-seeds") {
    WriteSeeds(argv[2]);
    return 0;
  }
  int failures = 0;
  for (int i = 1; i < argc; ++i) failures += RunFile(argv[i]);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kvick

int main(int argc, char** argv) { return kvick::RunCommand(argc, argv); }
