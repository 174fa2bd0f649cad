#include "engine/stop_string_filter.h"

#include <algorithm>

namespace kvick {

StopStringFilter::StopStringFilter(const Model& model, std::span<const std::string> stops)
    : stream_(model), stops_(stops) {}

std::string_view StopStringFilter::Append(int32_t token) {
  waiting_ += stream_.Append(token);
  const size_t stop = FindStop();
  is_stopped_ = stop != std::string::npos;
  return Show(
      std::string_view(waiting_).substr(0, is_stopped_ ? stop : waiting_.size() - HeldBackBytes()));
}

std::string_view StopStringFilter::Finish() {
  if (is_stopped_) return {};
  waiting_ += stream_.Finish();
  const size_t stop = FindStop();
  is_stopped_ = stop != std::string::npos;
  return Show(std::string_view(waiting_).substr(0, stop));
}

std::string_view StopStringFilter::Show(std::string_view piece) {
  const size_t num_before = shown_.size();
  shown_ += piece;
  waiting_.erase(0, piece.size());
  return std::string_view(shown_).substr(num_before);
}

size_t StopStringFilter::FindStop() const {
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, waiting_.find(stop));
  return first;
}

size_t StopStringFilter::HeldBackBytes() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (size_t num = std::min(stop.size() - 1, waiting_.size()); num > longest; --num) {
      if (waiting_.ends_with(std::string_view(stop).substr(0, num))) longest = num;
    }
  }
  return longest;
}

}  // namespace kvick
