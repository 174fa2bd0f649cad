#include "formats/token_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/merge_table.h"

namespace kvick {
namespace {

constexpr size_t kNumKeys = 40'000;

template <class Function>
double Seconds(Function function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// What MurmurHash64A makes of a block of 8 bytes, and back. libstdc++ hashes strings by it.
constexpr uint64_t kMul = 0xC6A4A7935BD1E995u;

constexpr uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

uint64_t MixBlock(uint64_t block) {
  block *= kMul;
  return (block ^ block >> 47) * kMul;
}

uint64_t UnmixBlock(uint64_t mixed) {
  mixed *= Inverse(kMul);
  return (mixed ^ mixed >> 47) * Inverse(kMul);
}

// Strings of 16 bytes that libstdc++ hashes to one value: the second block undoes the first.
std::vector<std::string> CollidingStrings() {
  constexpr uint64_t kSeed = 0xC70F6907;
  std::vector<std::string> strings;
  for (uint64_t i = 0; i < kNumKeys; ++i) {
    const uint64_t state = ((kSeed ^ 16 * kMul) ^ MixBlock(i)) * kMul;
    const uint64_t blocks[2] = {i, UnmixBlock(state)};
    std::string string(16, '\0');
    std::memcpy(string.data(), blocks, sizeof blocks);
    strings.push_back(string);
  }
  return strings;
}

double SecondsToIndex(const std::vector<std::string>& strings) {
  return Seconds([&] {
    TokenIndex index(strings.size());
    for (size_t i = 0; i < strings.size(); ++i) index.Insert(strings, static_cast<int32_t>(i));
    for (size_t i = 0; i < strings.size(); i += 97) {
      EXPECT_EQ(index.Find(strings, strings[i]), static_cast<int32_t>(i));
    }
  });
}

TEST(TokenIndex, FindsTheFirstOfEqualStrings) {
  const std::vector<std::string> strings = {"a", "", "bc", "a"};
  TokenIndex index(strings.size());
  for (int32_t id = 0; id < 4; ++id) index.Insert(strings, id);
  EXPECT_EQ(index.Find(strings, "a"), 0);
  EXPECT_EQ(index.Find(strings, ""), 1);
  EXPECT_EQ(index.Find(strings, "bc"), 2);
  EXPECT_EQ(index.Find(strings, "b"), kNoToken);
}

TEST(TokenIndex, AFileCannotChooseStringsThatCollide) {
  const std::vector<std::string> colliding = CollidingStrings();
  const std::hash<std::string> hash;
  if (hash(colliding.front()) != hash(colliding.back())) {
    GTEST_SKIP() << "this standard library hashes strings in another way";
  }
  std::vector<std::string> plain;
  for (size_t i = 0; i < kNumKeys; ++i) plain.push_back("a plain string " + std::to_string(i));
  EXPECT_LT(SecondsToIndex(colliding), 0.25 + 10 * SecondsToIndex(plain));
}

// Multiples of the number of buckets that std::unordered_map takes for so many keys.
TEST(MergeTable, AFileCannotChoosePairsThatCollide) {
  std::unordered_map<uint64_t, int> map;
  map.reserve(kNumKeys);
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (uint64_t i = 1; pairs.size() < kNumKeys; ++i) {
    const uint64_t key = i * map.bucket_count();
    const auto left = static_cast<int32_t>(key >> 32), right = static_cast<int32_t>(key);
    if (right >= 0) pairs.emplace_back(left, right);
  }
  MergeTable table(pairs.size());
  const double seconds = Seconds([&] {
    for (size_t i = 0; i < pairs.size(); ++i) {
      const BpeMerge merge{static_cast<double>(i), static_cast<int32_t>(i)};
      table.Insert(pairs[i].first, pairs[i].second, merge, DuplicateMerges::kLastCounts);
    }
  });
  EXPECT_LT(seconds, 0.5);
  EXPECT_EQ(table.Find(pairs[7].first, pairs[7].second)->id, 7);
  EXPECT_FALSE(table.Find(pairs[7].second, pairs[7].first).has_value());
}

}  // namespace
}  // namespace kvick
