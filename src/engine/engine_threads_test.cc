// The engine's own thread, and those of its callers.

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine_testing.h"
#include "kvick/engine.h"

namespace kvick {
namespace {

using testing::Alone;
using testing::kSmallTokenBytes;
using testing::Request;

class EngineThreadsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> Create(EngineOptions options) {
    if (options.context_tokens == 0) options.context_tokens = 256;
    options.exec.num_threads = 1;
    return Engine::Create(*opened_.model, options).value();
  }

  const testing::OpenedRandomLlama opened_{testing::SmallLlama()};
};

// Counts the ends of requests, and waits for them. Must outlive the engine: it may still be in a
// callback when the last end is known.
class Ends {
 public:
  RequestCallbacks Callbacks() {
    RequestCallbacks callbacks;
    callbacks.on_finish = [this](GenerateResult result) {
      num_cancelled_ += result.finish_reason == FinishReason::kCancelled;
      if (++num_ == wanted_) is_reached_.set_value();
    };
    return callbacks;
  }
  void Wait() { is_reached_.get_future().wait(); }
  int num() const { return num_; }
  int num_cancelled() const { return num_cancelled_; }
  explicit Ends(int wanted) : wanted_(wanted) {}

 private:
  int wanted_;
  std::atomic<int> num_ = 0, num_cancelled_ = 0;
  std::promise<void> is_reached_;
};

TEST_F(EngineThreadsTest, ManyThreadsSubmitCancelAndAsk) {
  static constexpr uint32_t kThreads = 6, kRequests = 40;
  const auto request_of = [](uint32_t t, uint32_t i) {
    return Request(1 + (i * 7 + t) % 30, i % 5, 1 + i % 9);
  };
  std::vector<GenerateResult> results(kThreads * kRequests);
  Ends ends(kThreads * kRequests);
  const auto engine = Create({.max_sequences = 4,
                              .context_tokens = 64,
                              .block_tokens = 4,
                              .cache_bytes = 96 * kSmallTokenBytes,
                              .batch_tokens = 16});
  const auto work = [&](uint32_t t) {
    for (uint32_t i = 0; i < kRequests; ++i) {
      RequestCallbacks callbacks = ends.Callbacks();
      callbacks.on_finish = [&results, t, i, also = callbacks.on_finish](GenerateResult result) {
        results[t * kRequests + i] = result;
        also(std::move(result));
      };
      const auto id = engine->Submit(request_of(t, i), callbacks);
      ASSERT_TRUE(id.has_value()) << id.error().message;
      if (i % 5 == t % 5) engine->Cancel(*id);
      if (i % 7 == 0) engine->Cancel(RequestId{static_cast<uint64_t>(*id) / 2});
      EXPECT_LE(engine->stats().num_running, 4);
      EXPECT_EQ(engine->context_tokens(), 64);
    }
  };
  std::vector<std::jthread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  threads.clear();
  ends.Wait();
  EXPECT_EQ(engine->stats().num_finished, kThreads * kRequests);
  EXPECT_EQ(engine->stats().num_running + engine->stats().num_waiting, 0);
  EXPECT_EQ(engine->stats().usage.reserved_bytes, 0);
  Alone alone(*opened_.model);
  for (uint32_t t = 0; t < kThreads; ++t) {
    for (uint32_t i = 0; i < kRequests; ++i) {
      const GenerateResult& result = results[t * kRequests + i];
      if (result.finish_reason == FinishReason::kCancelled) continue;
      EXPECT_EQ(result.tokens, alone.Run(request_of(t, i)).tokens);
    }
  }
}

TEST_F(EngineThreadsTest, GenerateMayBeCalledByManyAtOnce) {
  const auto engine = Create({.max_sequences = 3});
  const auto wanted = engine->Generate(std::vector{Request(9, 1, 7)}).value()[0].tokens;
  std::vector<std::jthread> threads;
  for (uint32_t t = 0; t < 5; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const auto results = engine->Generate(std::vector{Request(5 + t, t, 5), Request(9, 1, 7)});
        ASSERT_TRUE(results.has_value());
        EXPECT_EQ((*results)[1].tokens, wanted);
      }
    });
  }
}

TEST_F(EngineThreadsTest, ShutdownFinishesWhatWasSubmitted) {
  Ends ends(9);
  const auto engine = Create({.max_sequences = 2});
  for (uint32_t i = 0; i < 9; ++i) {
    ASSERT_TRUE(engine->Submit(Request(5, i, 10), ends.Callbacks()).has_value());
  }
  engine->Shutdown(ShutdownMode::kDrain);
  EXPECT_EQ(ends.num(), 9);
  EXPECT_EQ(ends.num_cancelled(), 0);
  EXPECT_EQ(engine->Submit(Request(5, 1, 5)).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(engine->Generate(std::vector{Request(5, 1, 5)}).error().code, ErrorCode::kCancelled);
  engine->Cancel(RequestId{3});
  engine->Shutdown(ShutdownMode::kDrain);
  engine->Shutdown(ShutdownMode::kAbort);
  EXPECT_EQ(engine->stats().num_finished, 9);
}

// The engine waits in a callback until it is shut down, so that nothing ends before.
TEST_F(EngineThreadsTest, ShutdownCancelsWhatWasSubmitted) {
  Ends ends(9);
  std::promise<void> gate;
  const auto engine = Create({.max_sequences = 2});
  RequestCallbacks callbacks = ends.Callbacks();
  callbacks.on_token = [opened = gate.get_future().share()](const TokenEvent&) {
    opened.wait();
    return true;
  };
  callbacks.on_finish = [&, also = callbacks.on_finish](GenerateResult result) {
    EXPECT_EQ(engine->Submit(Request(5, 1, 5)).error().code, ErrorCode::kCancelled);
    also(std::move(result));
  };
  for (uint32_t i = 0; i < 9; ++i) {
    ASSERT_TRUE(engine->Submit(Request(5, i, 250), callbacks).has_value());
  }
  std::jthread shutdown([&engine] { engine->Shutdown(ShutdownMode::kAbort); });
  while (engine->Submit(Request(5, 1, 250))) std::this_thread::yield();
  gate.set_value();
  shutdown.join();
  EXPECT_EQ(ends.num_cancelled(), 9);
}

TEST_F(EngineThreadsTest, ManyThreadsMayShutItDown) {
  Ends ends(4);
  const auto engine = Create({});
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(engine->Submit(Request(5, i, 250), ends.Callbacks()).has_value());
  }
  std::vector<std::jthread> threads;
  for (const ShutdownMode pending :
       {ShutdownMode::kDrain, ShutdownMode::kAbort, ShutdownMode::kDrain}) {
    threads.emplace_back([&engine, pending] { engine->Shutdown(pending); });
  }
  threads.clear();
  EXPECT_EQ(ends.num(), 4);
}

TEST_F(EngineThreadsTest, AnEngineThatGoesEndsItsRequests) {
  Ends ends(60);
  for (int round = 0; round < 20; ++round) {
    const auto engine = Create({.max_sequences = 2});
    for (uint32_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(engine->Submit(Request(5, i, 200), ends.Callbacks()).has_value());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
  }
  EXPECT_EQ(ends.num(), 60);
}

TEST_F(EngineThreadsTest, CallbacksMaySubmitCancelAndAsk) {
  Ends ends(1), of_endless(1);
  std::atomic<RequestId> endless{};
  const auto engine = Create({.max_sequences = 2});
  RequestCallbacks of_first;
  of_first.on_token = [&](const TokenEvent&) {
    EXPECT_GE(engine->stats().num_steps, 0);
    endless.wait(RequestId{});
    return true;
  };
  // A request that begins another, which begins a third.
  of_first.on_finish = [&](GenerateResult) {
    RequestCallbacks of_second;
    of_second.on_finish = [&](GenerateResult) {
      engine->Cancel(endless);
      EXPECT_TRUE(engine->Submit(Request(4, 3, 3), ends.Callbacks()).has_value());
    };
    EXPECT_TRUE(engine->Submit(Request(4, 2, 3), of_second).has_value());
  };
  ASSERT_TRUE(engine->Submit(Request(4, 1, 3), of_first).has_value());
  endless = engine->Submit(Request(4, 9, 250), of_endless.Callbacks()).value();
  endless.notify_all();
  ends.Wait();
  of_endless.Wait();
  EXPECT_EQ(of_endless.num_cancelled(), 1);
}

TEST_F(EngineThreadsTest, ACallbackMayCancelItsOwnRequest) {
  Ends ends(1);
  std::atomic<RequestId> own{};
  const auto engine = Create({.max_sequences = 2});
  RequestCallbacks callbacks = ends.Callbacks();
  callbacks.on_token = [&](const TokenEvent&) {
    own.wait(RequestId{});
    engine->Cancel(own);
    return true;
  };
  own = engine->Submit(Request(4, 1, 250), callbacks).value();
  own.notify_all();
  ends.Wait();
  EXPECT_EQ(ends.num_cancelled(), 1);
}

// Who hears of an end finds it in the stats.
TEST_F(EngineThreadsTest, AnEndIsInTheStatsWhenItIsTold) {
  std::promise<EngineStats> at_end;
  const auto engine = Create({.max_sequences = 2});
  RequestCallbacks callbacks;
  callbacks.on_finish = [&](GenerateResult) { at_end.set_value(engine->stats()); };
  ASSERT_TRUE(engine->Submit(Request(4, 1, 3), callbacks).has_value());
  const EngineStats stats = at_end.get_future().get();
  EXPECT_EQ(stats.num_finished, 1);
  EXPECT_EQ(stats.num_running, 0);
  EXPECT_EQ(stats.usage.reserved_bytes, 0);
  EXPECT_EQ(stats.prompt_tokens, 4);
  EXPECT_EQ(stats.decode_tokens, 2);
}

TEST_F(EngineThreadsTest, WithNothingToDoItSleeps) {
  const auto engine = Create({.max_sequences = 2});
  ASSERT_TRUE(engine->Generate(std::vector{Request(4, 1, 20)}).has_value());
  engine->Cancel(RequestId{99});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto cpu_us = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * int64_t{1000000} + now.tv_nsec / 1000;
  };
  const int64_t before = cpu_us();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_us() - before, 5000);
}

}  // namespace
}  // namespace kvick
