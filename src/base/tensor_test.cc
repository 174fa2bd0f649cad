#include "kvick/tensor.h"

#include <gtest/gtest.h>

#include "base/tensor_check.h"

namespace kvick {
namespace {

TEST(Tensor, DenseViewsAreRowMajor) {
  const float data[24] = {};
  const TensorView view = DenseF32(data, {2, 3, 4});
  EXPECT_EQ(view.rank, 3);
  EXPECT_EQ(view.strides[0], 12);
  EXPECT_EQ(view.strides[1], 4);
  EXPECT_EQ(view.strides[2], 1);
}

TEST(Tensor, ADocumentedShapeIsACheckedShape) {
  const float data[24] = {};
  EXPECT_TRUE(CheckDense("x", DenseF32(data, {2, 3, 4}), {2, 3, 4}).has_value());
  TensorView strided = DenseF32(data, {2, 3, 4});
  strided.strides[0] = 13;
  const auto status = CheckDense("x", strided, {2, 3, 4});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "x: expected strides [12, 4, 1] (no gaps), got [13, 4, 1]");
  EXPECT_TRUE(CheckShape("x", strided, {2, 3, 4}).has_value());
  strided.strides[2] = 2;
  EXPECT_FALSE(CheckShape("x", strided, {2, 3, 4}).has_value());
  EXPECT_FALSE(CheckDense("x", DenseF32(data, {2, 12}), {2, 3, 4}).has_value());
  EXPECT_FALSE(CheckDense("x", DenseF32(static_cast<const float*>(nullptr), {2}), {2}).has_value());
  TensorView unused_entries = DenseF32(data, {2, 3});
  unused_entries.shape[3] = unused_entries.strides[3] = 99;
  EXPECT_TRUE(CheckDense("x", unused_entries, {2, 3}).has_value());
}

}  // namespace
}  // namespace kvick
