#ifndef KVICK_ENGINE_STOP_STRING_FILTER_H_
#define KVICK_ENGINE_STOP_STRING_FILTER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kvick/model.h"

namespace kvick {

// The text of tokens as they come, up to the first stop strings, wherever tokens divide it.
class StopStringFilter {
 public:
  // `model` and `stops` must outlive it. REQUIRES: no stop strings is empty.
  StopStringFilter(const Model& model, std::span<const std::string> stops);

  // What can be shown now: a character that is not whole, and an end that may begin a stop string,
  // wait. Valid until the next call.
  std::string_view Append(int32_t token);
  // What still waits, at the end.
  std::string_view Finish();

  // Whether a stop string has come. Nothing may be appended then.
  bool is_stopped() const { return is_stopped_; }
  // All that has been shown.
  const std::string& shown() const { return shown_; }

 private:
  std::string_view Show(std::string_view piece);
  // The start of the first stop strings in waiting_, or npos.
  size_t FindStop() const;
  // The length of the longest end of waiting_ that begins a stop string.
  size_t HeldBackBytes() const;

  TextStream stream_;
  std::span<const std::string> stops_;
  std::string waiting_;
  std::string shown_;
  bool is_stopped_ = false;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_STOP_STRING_FILTER_H_
