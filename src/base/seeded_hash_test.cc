#include "base/seeded_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <unordered_set>

#include "base/hash_flood_testing.h"

namespace kvick {
namespace {

TEST(SeededHash, IsAFunctionOfTheKey) {
  const std::string text = "blk.0.attn_q.weight", copy = text;
  EXPECT_EQ(SeededHash(text), SeededHash(copy));
  EXPECT_NE(SeededHash(text), SeededHash("blk.0.attn_k.weight"));
  EXPECT_EQ(SeededHash(uint64_t{7}), SeededHash(uint64_t{7}));
  EXPECT_NE(SeededHash(uint64_t{7}), SeededHash(uint64_t{8}));
}

TEST(SeededHash, SpreadsStringsThatCollideInStdHash) {
  const auto strings = testing::CollidingStrings(12);
  std::set<size_t> plain;
  std::set<uint64_t> seeded;
  for (const std::string& text : strings) {
    plain.insert(std::hash<std::string>()(text));
    seeded.insert(SeededHash(text));
  }
  EXPECT_EQ(plain.size(), 1u);  // the strings are a flood
  EXPECT_EQ(seeded.size(), strings.size());
}

// Multiples of the number of buckets share a bucket under std::hash, which is the identity.
TEST(SeededHash, SpreadsNumbersThatShareABucket) {
  std::unordered_set<uint64_t, SeededHasher> keys;
  keys.reserve(4096);
  const uint64_t step = keys.bucket_count();
  for (uint64_t i = 0; i < 4096; ++i) keys.insert(i * step);
  size_t largest = 0;
  for (size_t i = 0; i < keys.bucket_count(); ++i) {
    largest = std::max(largest, keys.bucket_size(i));
  }
  EXPECT_LT(largest, 32u);
}

}  // namespace
}  // namespace kvick
