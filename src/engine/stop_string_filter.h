#ifndef KVICK_ENGINE_STOP_STRING_FILTER_H_
#define KVICK_ENGINE_STOP_STRING_FILTER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kvick/model.h"

namespace kvick {

// Decodes tokens as they come, up to the first stop string, however tokens divide it.
class StopStringFilter {
 public:
  // `model` and `stops` must outlive it. REQUIRES: no stop string is empty.
  StopStringFilter(const Model& model, std::span<const std::string> stops);

  // The text that can be shown now. Incomplete characters, and an end that may be the start of a
  // stop string, are held back. Valid until the next call.
  std::string_view Append(int32_t token);
  // The text that is still held back. Valid as long as this object. To be called once, at the end.
  std::string_view Finish();

  // Whether a stop string was found. Nothing may be appended then.
  bool is_stopped() const { return is_stopped_; }
  // All text returned so far.
  const std::string& shown() const { return shown_; }

 private:
  std::string_view Show(std::string_view piece);
  // Where the first stop string in waiting_ starts, or npos.
  size_t FindStop() const;
  // The length of the longest end of waiting_ that is the start of a stop string.
  size_t HeldBackBytes() const;

  TextStream stream_;
  std::span<const std::string> stops_;
  std::string waiting_;
  std::string shown_;
  bool is_stopped_ = false;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_STOP_STRING_FILTER_H_
