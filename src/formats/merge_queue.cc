#include "formats/merge_queue.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kvick {
namespace {

constexpr size_t kMaxOpenRuns = size_t{1} << 16;

}  // namespace

void MergeQueue::Reset(size_t num_symbols) {
  entries_.clear();
  runs_.clear();
  heap_.clear();
  open_run_.assign(std::bit_ceil(std::min(num_symbols + 1, kMaxOpenRuns)), kNone);
}

// Costs may share a place: then more runs are begun than have to be.
uint32_t& MergeQueue::OpenRun(double cost) {
  const uint64_t hash = std::bit_cast<uint64_t>(cost) * 0x9E3779B97F4A7C15u;
  return open_run_[(hash >> 32) & (open_run_.size() - 1)];
}

void MergeQueue::Push(const Pair& pair) {
  const auto entry = static_cast<uint32_t>(entries_.size());
  entries_.push_back({pair.left, pair.num_bytes, pair.id, kNone});
  uint32_t& open = OpenRun(pair.cost);
  if (open != kNone && runs_[open].cost == pair.cost && runs_[open].first != kNone &&
      entries_[runs_[open].last].left < pair.left) {
    entries_[runs_[open].last].next = entry;
    runs_[open].last = entry;
    return;
  }
  open = static_cast<uint32_t>(runs_.size());
  runs_.push_back({pair.cost, entry, entry});
  heap_.push_back({pair.cost, pair.left, open});
  std::push_heap(heap_.begin(), heap_.end(), [](const Head& a, const Head& b) { return b < a; });
}

MergeQueue::Pair MergeQueue::Pop() {
  Head& top = heap_.front();
  Run& run = runs_[top.run];
  const Entry& entry = entries_[run.first];
  const Pair pair{run.cost, entry.left, entry.num_bytes, entry.id};
  run.first = entry.next;
  if (run.first != kNone) {
    top.left = entries_[run.first].left;
  } else {
    top = heap_.back();
    heap_.pop_back();
  }
  SiftDown();
  return pair;
}

// Restores the heap below its first element, and stops where that belongs.
void MergeQueue::SiftDown() {
  size_t parent = 0;
  while (true) {
    size_t child = 2 * parent + 1;
    if (child >= heap_.size()) return;
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < heap_[parent])) return;
    std::swap(heap_[child], heap_[parent]);
    parent = child;
  }
}

}  // namespace kvick
