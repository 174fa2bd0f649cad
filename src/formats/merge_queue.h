#ifndef KVICK_FORMATS_MERGE_QUEUE_H_
#define KVICK_FORMATS_MERGE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvick {

// The pairs of neighbours that may be joined, cheapest first; among equals, the leftmost.
//
// Pairs of one cost come mostly from left to right. Such a run is a list, and a heap orders the
// runs by their first pairs alone: taking the next pair of the cheapest run compares it with two
// others. So a text that repeats itself takes linear time, and any other O(n log n).
class MergeQueue {
 public:
  struct Pair {
    double cost;
    uint32_t left;       ///< index of the left symbol
    uint32_t num_bytes;  ///< of both symbols
    int32_t id;          ///< what they become
  };

  // Empties the queue, for a text of `num_symbols`. Memory is kept.
  void Reset(size_t num_symbols);

  bool empty() const { return heap_.empty(); }
  void Push(const Pair& pair);
  // REQUIRES: not empty.
  Pair Pop();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Entry {
    uint32_t left, num_bytes;
    int32_t id;
    uint32_t next;  // in its run
  };
  struct Run {
    double cost;
    uint32_t first, last;  // entries; first is kNone once all are taken
  };
  struct Head {
    double cost;
    uint32_t left, run;

    bool operator<(const Head& other) const {
      return cost != other.cost ? cost < other.cost : left < other.left;
    }
  };

  uint32_t& OpenRun(double cost);
  void SiftDown();

  std::vector<Entry> entries_;
  std::vector<Run> runs_;
  std::vector<Head> heap_;          // of the runs that are not empty
  std::vector<uint32_t> open_run_;  // by a hash of the cost: the run that was begun last, or kNone
};

}  // namespace kvick

#endif  // KVICK_FORMATS_MERGE_QUEUE_H_
