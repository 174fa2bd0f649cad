// Ends that are out of the ordinary: of the process, by fork, by a callback. Each in a process of
// its own, which the alarm ends where it would hang.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/engine_testing.h"
#include "kvick/engine.h"

namespace kvick {
namespace {

using testing::RandomLlama;
using testing::Request;

constexpr unsigned kAlarmSeconds = 60;

// Large enough that every pass uses all threads.
RandomLlama Geometry() { return {.num_layers = 4, .vocab_size = testing::kVocab}; }

struct ModelAndEngine {
  testing::OpenedRandomLlama opened{Geometry()};
  std::shared_ptr<Engine> engine =
      Engine::Create(*opened.model,
                     {.max_sequences = 2, .context_tokens = 4096, .exec = {.num_threads = 2}})
          .value();

  // Returns once the engine is in the middle of a request that goes on for long.
  void StartALongRequest() const {
    const auto has_started = std::make_shared<std::promise<void>>();
    RequestCallbacks callbacks;
    callbacks.on_token = [has_started, is_first = true](const TokenEvent&) mutable {
      if (std::exchange(is_first, false)) has_started->set_value();
      return true;
    };
    GenerateRequest request = Request(8, 1, 4000);
    request.ignore_eos = true;
    KVICK_CHECK(engine->Submit(request, std::move(callbacks)).has_value());
    has_started->get_future().wait();
  }
};

class EngineLifetimeTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Runs body() in a child of fork(); returns whether it ended with true.
  template <class Body>
  static bool IsTrueInAChild(Body&& body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kAlarmSeconds);
      _exit(body() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

void ExitWithABusyEngineInAStaticObject() {
  alarm(kAlarmSeconds);
  static const ModelAndEngine held;
  held.StartALongRequest();
  std::exit(0);
}

void ExitWithABusyEngineThatIsNeverDestroyed() {
  alarm(kAlarmSeconds);
  const auto* held = new ModelAndEngine;
  held->StartALongRequest();
  std::exit(0);
}

TEST_F(EngineLifetimeTest, OneInAStaticObjectEndsWithTheProcess) {
  EXPECT_EXIT(ExitWithABusyEngineInAStaticObject(), ::testing::ExitedWithCode(0), "");
}

TEST_F(EngineLifetimeTest, TheProcessMayExitWhileOneIsBusy) {
  EXPECT_EXIT(ExitWithABusyEngineThatIsNeverDestroyed(), ::testing::ExitedWithCode(0), "");
}

TEST_F(EngineLifetimeTest, AChildOfForkIsToldThatItsParentsEngineIsNotThere) {
  ModelAndEngine held;
  held.StartALongRequest();
  EXPECT_TRUE(IsTrueInAChild([&] {
    const auto submitted = held.engine->Submit(Request(3, 1, 2));
    const auto generated = held.engine->Generate(std::vector{Request(3, 1, 2)});
    held.engine->Cancel(RequestId{1});
    const bool has_stats = held.engine->stats().num_steps >= 0;
    held.engine->Shutdown(ShutdownMode::kDrain);
    held.engine.reset();
    return has_stats && !submitted && submitted.error().code == ErrorCode::kCancelled &&
           !generated && generated.error().code == ErrorCode::kCancelled;
  }));
  EXPECT_TRUE(held.engine->Generate(std::vector{Request(3, 1, 2)}).has_value());
}

TEST_F(EngineLifetimeTest, AChildOfForkMayHaveAnEngineOfItsOwn) {
  const ModelAndEngine held;
  const auto wanted = held.engine->Generate(std::vector{Request(9, 3, 20)}).value()[0].tokens;
  EXPECT_TRUE(IsTrueInAChild([&] {
    const auto engine = Engine::Create(*held.opened.model, {.exec = {.num_threads = 2}});
    if (!engine) return false;
    const auto results = (*engine)->Generate(std::vector{Request(9, 3, 20)});
    return results && (*results)[0].tokens == wanted;
  }));
}

// A callback of either kind lets go of the last pointer; the request that waits is cancelled.
TEST_F(EngineLifetimeTest, ItsOwnCallbackMayDestroyIt) {
  const testing::OpenedRandomLlama opened(Geometry());
  for (const bool in_on_token : {false, true}) {
    std::unique_ptr<Engine> engine =
        Engine::Create(*opened.model, {.max_sequences = 1, .exec = {.num_threads = 2}}).value();
    std::promise<void> is_submitted;
    const std::shared_future<void> both_submitted = is_submitted.get_future().share();
    std::promise<FinishReason> of_owner, of_other;
    RequestCallbacks owner, other;
    owner.on_token = [&, in_on_token](const TokenEvent&) {
      both_submitted.wait();
      if (in_on_token) engine.reset();
      return true;
    };
    owner.on_finish = [&](const GenerateResult& result) {
      engine.reset();
      of_owner.set_value(result.finish_reason);
    };
    other.on_finish = [&](const GenerateResult& result) {
      of_other.set_value(result.finish_reason);
    };
    ASSERT_TRUE(engine->Submit(Request(4, 1, 5), owner).has_value());
    ASSERT_TRUE(engine->Submit(Request(4, 2, 2000), other).has_value());
    is_submitted.set_value();
    EXPECT_EQ(of_owner.get_future().get(),
              in_on_token ? FinishReason::kCancelled : FinishReason::kLength);
    EXPECT_EQ(of_other.get_future().get(), FinishReason::kCancelled);
  }
}

// The callback itself is the last owner.
TEST_F(EngineLifetimeTest, ItsOwnCallbackMayOwnIt) {
  const testing::OpenedRandomLlama opened(Geometry());
  std::promise<void> has_ended;
  {
    std::shared_ptr<Engine> engine =
        Engine::Create(*opened.model, {.exec = {.num_threads = 2}}).value();
    RequestCallbacks callbacks;
    callbacks.on_finish = [engine, &has_ended](const GenerateResult&) { has_ended.set_value(); };
    ASSERT_TRUE(engine->Submit(Request(4, 1, 50), std::move(callbacks)).has_value());
  }
  has_ended.get_future().wait();
}

}  // namespace
}  // namespace kvick
