#ifndef KVICK_FORMATS_DAMAGE_TESTING_H_
#define KVICK_FORMATS_DAMAGE_TESTING_H_

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "kvick/status.h"

// Tables of damages to a good input, each a test of its own.
namespace kvick::testing {

template <class Change>
struct Damage {
  const char* name;
  Change change;
  const char* message;  // a part of it
  ErrorCode code = ErrorCode::kCorrupt;
};

template <class Change>
void PrintTo(const Damage<Change>& damage, std::ostream* out) {
  *out << damage.name;
}

// For INSTANTIATE_TEST_SUITE_P.
struct DamageName {
  template <class Change>
  std::string operator()(const ::testing::TestParamInfo<Damage<Change>>& info) const {
    return info.param.name;
  }
};

template <class T>
Error ErrorOf(const Result<T>& result) {
  return result ? Error{ErrorCode::kInternal, "no error"} : result.error();
}

template <class Change>
void ExpectRefused(const Error& error, const Damage<Change>& damage) {
  EXPECT_NE(error.message.find(damage.message), std::string::npos) << error.message;
  EXPECT_EQ(error.code, damage.code) << error.message;
}

}  // namespace kvick::testing

#endif  // KVICK_FORMATS_DAMAGE_TESTING_H_
