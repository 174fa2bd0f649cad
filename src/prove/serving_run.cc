#include "prove/serving_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace kvick {
namespace {

double MillisecondsBetween(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

// Collects events on the engine's thread; read when all requests have finished.
class Observer {
 public:
  explicit Observer(size_t num_requests) : last_token_(num_requests) {}

  RequestCallbacks Callbacks(size_t request_idx) {
    RequestCallbacks callbacks;
    callbacks.on_token = [this, request_idx](const TokenEvent& event) {
      if (!event.token) return true;
      const Clock::time_point now = Clock::now();
      auto& last = last_token_[request_idx];
      if (last) between_ms.push_back(MillisecondsBetween(*last, now));
      last = now;
      return true;
    };
    callbacks.on_finish = [this](GenerateResult result) {
      first_token_ms.push_back(static_cast<double>(result.first_token_us) / 1e3);
      num_tokens += std::ssize(result.tokens);
      if (result.error && !error) error = result.error;
      num_done.fetch_add(1, std::memory_order_release);
    };
    return callbacks;
  }

  std::vector<double> between_ms;
  std::vector<double> first_token_ms;
  int64_t num_tokens = 0;
  std::optional<Error> error;
  std::atomic<int64_t> num_done{0};

 private:
  std::vector<std::optional<Clock::time_point>> last_token_;
};

// Means of the engine's state, weighted by time.
class Occupancy {
 public:
  void Add(const EngineStats& stats) {
    const Clock::time_point now = Clock::now();
    const double weight = MillisecondsBetween(std::exchange(last_, now), now);
    if (stats.num_running == 0) return;
    (stats.num_waiting > 0 ? full_ : any_).Add(stats, weight);
  }

  void WriteTo(ServingFigures& figures) const {
    const Means& means = full_.weight > 0 ? full_ : any_;
    if (means.weight == 0) return;
    figures.in_flight = means.in_flight / means.weight;
    figures.pool_use = means.pool_use / means.weight;
    figures.waste = means.empty_bytes / means.reserved_bytes;
  }

 private:
  struct Means {
    double weight = 0, in_flight = 0, pool_use = 0, empty_bytes = 0, reserved_bytes = 0;

    void Add(const EngineStats& stats, double w) {
      weight += w;
      in_flight += w * static_cast<double>(stats.num_running);
      pool_use += w * static_cast<double>(stats.usage.reserved_bytes) /
                  static_cast<double>(stats.usage.capacity_bytes);
      empty_bytes += w * static_cast<double>(stats.usage.empty_bytes);
      reserved_bytes += w * static_cast<double>(stats.usage.reserved_bytes);
    }
  };

  Clock::time_point last_ = Clock::now();
  Means full_, any_;
};

}  // namespace

Percentiles Percentiles::Of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto rank = [&](double share) {
    const auto i = std::ceil(share * static_cast<double>(values.size())) - 1;
    return values[static_cast<size_t>(std::max(i, 0.0))];
  };
  return {rank(0.5), rank(0.9), rank(0.99)};
}

double ServingFigures::hit_rate() const {
  const PrefixStats& prefix = stats.prefix;
  if (prefix.tokens_asked == 0) return 0;
  return static_cast<double>(prefix.tokens_hit) / static_cast<double>(prefix.tokens_asked);
}

Result<ServingFigures> Serve(Engine& engine, std::span<const TracedRequest> trace,
                             int64_t vocab_size,
                             const std::function<void(int64_t num_done)>& on_progress) {
  // Reading the stats takes a lock of the engine: seldom enough not to slow down steps.
  constexpr auto kLook = std::chrono::milliseconds(2);
  Observer observer(trace.size());
  Occupancy occupancy;
  const Clock::time_point start = Clock::now();
  size_t num_submitted = 0;
  while (observer.num_done.load(std::memory_order_acquire) < std::ssize(trace)) {
    while (num_submitted < trace.size() &&
           start + std::chrono::microseconds(trace[num_submitted].arrival_us) <= Clock::now()) {
      GenerateRequest request =
          RequestOf(trace[num_submitted], static_cast<int64_t>(num_submitted), vocab_size);
      const auto id = engine.Submit(std::move(request), observer.Callbacks(num_submitted));
      if (!id) {
        engine.Shutdown(ShutdownMode::kAbort);  // the observer ends with this call
        return tl::unexpected(id.error());
      }
      ++num_submitted;
    }
    std::this_thread::sleep_for(kLook);
    occupancy.Add(engine.stats());
    if (on_progress) on_progress(observer.num_done.load(std::memory_order_relaxed));
  }
  if (observer.error) return tl::unexpected(*observer.error);
  ServingFigures figures;
  figures.seconds = MillisecondsBetween(start, Clock::now()) / 1e3;
  figures.num_requests = std::ssize(trace);
  for (const TracedRequest& request : trace) figures.prompt_tokens += request.prompt_tokens;
  figures.output_tokens = observer.num_tokens;
  figures.first_token_ms = Percentiles::Of(std::move(observer.first_token_ms));
  figures.between_tokens_ms = Percentiles::Of(std::move(observer.between_ms));
  occupancy.WriteTo(figures);
  figures.stats = engine.stats();
  const EngineStats& stats = figures.stats;
  figures.overhead = static_cast<double>(stats.step_us - stats.prompt_us - stats.decode_us) /
                     static_cast<double>(std::max<int64_t>(1, stats.step_us));
  return figures;
}

Result<std::vector<GenerateResult>> GenerateAll(Engine& engine,
                                                std::span<const GenerateRequest> requests) {
  KVICK_ASSIGN_OR_RETURN(auto results, engine.Generate(requests));
  for (const GenerateResult& result : results) {
    if (result.error) return tl::unexpected(*result.error);
  }
  return results;
}

Status CheckServing(const Model& model, const EngineOptions& options,
                    std::span<const TracedRequest> trace, int64_t num_requests) {
  std::vector<TracedRequest> shortest(trace.begin(), trace.end());
  std::ranges::stable_sort(
      shortest, {}, [](const TracedRequest& r) { return r.prompt_tokens + r.output_tokens; });
  shortest.resize(std::min(shortest.size(), static_cast<size_t>(num_requests)));
  std::vector<GenerateRequest> requests;
  for (size_t i = 0; i < shortest.size(); ++i) {
    requests.push_back(RequestOf(shortest[i], static_cast<int64_t>(i), model.info().vocab_size));
  }
  KVICK_ASSIGN_OR_RETURN(const auto together, Engine::Create(model, options));
  KVICK_ASSIGN_OR_RETURN(const auto results, GenerateAll(*together, requests));
  EngineOptions one_by_one = options;
  one_by_one.max_sequences = 1;
  one_by_one.prefix_reuse = PrefixReuse::kOff;
  KVICK_ASSIGN_OR_RETURN(const auto alone, Engine::Create(model, one_by_one));
  for (size_t i = 0; i < requests.size(); ++i) {
    KVICK_ASSIGN_OR_RETURN(const auto single, GenerateAll(*alone, {&requests[i], 1}));
    if (results[i].tokens == single[0].tokens) continue;
    return Fail(ErrorCode::kInternal,
                "serving: request {} of {}: expected the tokens that it gives alone, got others", i,
                requests.size());
  }
  return {};
}

Result<PrefixTimes> TimePrefixHit(Engine& engine, int64_t num_prefix, int64_t num_new,
                                  int64_t vocab_size) {
  constexpr int64_t kNumPrompts = 3, kFirstId = int64_t{1} << 20;  // an id that no trace uses
  std::vector<double> misses, hits;
  for (int64_t i = 0; i < kNumPrompts; ++i) {
    const TracedRequest traced{0, num_prefix + num_new, 1, kFirstId + i, num_prefix};
    for (auto* times : {&misses, &hits}) {
      const int64_t rest = kFirstId + 2 * i + (times == &hits ? 1 : 0);
      const GenerateRequest request = RequestOf(traced, rest, vocab_size);
      KVICK_ASSIGN_OR_RETURN(const auto results, GenerateAll(engine, {&request, 1}));
      times->push_back(static_cast<double>(results[0].first_token_us));
    }
  }
  return PrefixTimes{Percentiles::Of(misses).p50, Percentiles::Of(hits).p50};
}

}  // namespace kvick
