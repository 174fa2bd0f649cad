#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/engine_testing.h"

namespace kvick {
namespace {

using testing::kVocab;
using testing::Request;

// The schedule alone: what stands in the cache is zero, and what the tokens are is drawn.
class ScheduleTest : public ::testing::Test {
 protected:
  void Start(const SchedulerLimits& limits, int64_t num_blocks, int64_t block_tokens) {
    limits_ = limits;
    KvConfig config{.num_layers = 1, .num_kv_heads = 1, .head_dim = 2};
    config.block_tokens = block_tokens;
    config.num_blocks = num_blocks;
    config.max_sequence_tokens = limits.context_tokens;
    config.fill = KvFill::kNan;
    cache_ = KvCache::Create(config).value();
    scheduler_ = std::make_unique<Scheduler>(*cache_, limits);
    last_id_ = 0;
    ended_.clear();
  }

  void Add(GenerateRequest request) {
    const auto active = std::make_shared<ActiveRequest>();
    active->id = RequestId{++last_id_};
    active->request = std::move(request);
    scheduler_->Add(std::make_unique<Sequence>(*opened_.model, active, limits_.context_tokens));
  }

  bool has_work() const {
    return !HasFailure() && (!scheduler_->running().empty() || !scheduler_->waiting().empty());
  }

  // The tokens that each running text took in, the oldest first.
  std::vector<int64_t> Step() {
    const Status planned = scheduler_->PlanStep();
    EXPECT_TRUE(planned.has_value()) << (planned ? "" : planned.error().message);
    if (!planned) return {};
    std::vector<int64_t> tokens;
    std::vector<Sequence*> taking_part;
    for (const auto& g : scheduler_->running()) {
      Write(*g->plan);
      tokens.push_back(g->num_scheduled_tokens);
      taking_part.push_back(g.get());
    }
    EXPECT_TRUE(scheduler_->CommitStep().has_value());
    for (Sequence* g : taking_part) {
      if (g->num_uncomputed_tokens() == 0) SampleNextToken(*g);
    }
    Sequences finished = scheduler_->TakeFinished(Scheduler::Among::kAll).value();
    for (auto& g : finished) ended_.push_back(std::move(g));
    const Status verified = cache_->Verify();
    EXPECT_TRUE(verified.has_value()) << (verified ? "" : verified.error().message);
    EXPECT_EQ(cache_->num_sequences(), std::ssize(scheduler_->running()));
    return tokens;
  }

  KvCache& cache() { return *cache_; }
  Scheduler& scheduler() { return *scheduler_; }
  const Sequences& ended() const { return ended_; }

 private:
  void Write(WritePlan& plan) {
    const std::vector<float> zeros(static_cast<size_t>(plan.num_tokens() * 2), 0.0f);
    const TensorView view = DenseF32(zeros.data(), {plan.num_tokens(), 1, 2});
    EXPECT_TRUE(cache_->Write(plan, 0, view, view).has_value());
  }

  void SampleNextToken(Sequence& g) {
    std::vector<float> logits(kVocab, 0.0f);
    logits[random_() % kVocab] = 1;
    g.SampleNextToken(logits);
    scheduler_->StartPendingSamples(g, logits);
  }

  const testing::OpenedRandomLlama opened_{testing::SmallLlama()};
  SchedulerLimits limits_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  std::mt19937 random_{1};
  uint64_t last_id_ = 0;
  Sequences ended_;
};

TEST_F(ScheduleTest, DecodingComesFirstAndPromptsTakeTheRest) {
  Start({.max_running = 4, .batch_tokens = 10, .context_tokens = 200}, 100, 4);
  Add(Request(5, 1, 20));
  EXPECT_EQ(Step(), (std::vector<int64_t>{5}));
  Add(Request(30, 2, 20));
  Add(Request(3, 3, 20));
  EXPECT_EQ(Step(), (std::vector<int64_t>{1, 9}));
  EXPECT_EQ(Step(), (std::vector<int64_t>{1, 9}));
  EXPECT_EQ(Step(), (std::vector<int64_t>{1, 9}));
  EXPECT_EQ(Step(), (std::vector<int64_t>{1, 3, 3}));
  EXPECT_EQ(Step(), (std::vector<int64_t>{1, 1, 1}));
}

TEST_F(ScheduleTest, EachRunningTextTakesPartInEveryStep) {
  Start({.max_running = 3, .batch_tokens = 4, .context_tokens = 200}, 100, 4);
  Add(Request(2, 1, 20));
  Add(Request(50, 2, 20));
  EXPECT_EQ(Step(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(Step(), (std::vector<int64_t>{1, 3}));
  Add(Request(50, 3, 20));
  // The prompt that is under way takes all of the room: the new one cannot join.
  for (int i = 0; i < 15; ++i) EXPECT_EQ(Step(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(scheduler().waiting().size(), 1u);
  EXPECT_EQ(Step(), (std::vector<int64_t>{1, 1, 2}));  // 2 + 16 * 3 = 50
}

TEST_F(ScheduleTest, NobodyIsAdmittedBeforeAnOlderOne) {
  Start({.max_running = 4, .batch_tokens = 100, .context_tokens = 64}, 8, 4);
  Add(Request(16, 1, 4));
  EXPECT_EQ(Step(), (std::vector<int64_t>{16}));
  Add(Request(20, 2, 4));  // 6 blocks, of which 3 are there
  Add(Request(2, 3, 1));   // would fit
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Step(), (std::vector<int64_t>{1}));
  EXPECT_EQ(Step(), (std::vector<int64_t>{20, 2}));
}

TEST_F(ScheduleTest, TheYoungestStepsAsideAndTheOldestGoesOn) {
  Start({.max_running = 3, .batch_tokens = 100, .context_tokens = 64}, 9, 4);
  for (uint32_t i = 0; i < 3; ++i) Add(Request(3, i, 20));
  while (has_work()) Step();
  ASSERT_EQ(ended().size(), 3u);
  EXPECT_EQ(ended()[0]->request().id, RequestId{1});
  EXPECT_EQ(ended()[0]->result().num_preemptions, 0);
  EXPECT_GT(ended()[2]->result().num_preemptions, 0);
  EXPECT_GT(scheduler().num_preemptions(), 0);
  // What a text finds of its own when it comes back is not reused.
  for (const auto& g : ended()) EXPECT_EQ(g->result().num_reused_tokens, 0);
}

// Pools from what the largest needs upward. In every step the oldest that runs gets further.
TEST_F(ScheduleTest, TheOldestThatRunsAlwaysGetsFurther) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const int64_t block_tokens = std::vector<int64_t>{1, 3, 4, 40}[round % 4];
    const int64_t largest = (40 + block_tokens - 1) / block_tokens;
    const auto reuse = round % 3 == 0 ? PrefixReuse::kOff : PrefixReuse::kOn;
    Start({1 + round % 5, 8 + round % 20, 40, reuse}, largest + round / 10, block_tokens);
    for (uint32_t i = 0; i < 12; ++i) {
      const auto max_new_tokens = 1 + random() % 20, tokens_seed = random() % 3;
      Add(Request(1 + random() % 20, tokens_seed, max_new_tokens));
    }
    for (int num_steps = 0; has_work(); ++num_steps) {
      ASSERT_LT(num_steps, 1000);
      const Sequence* oldest =
          scheduler().running().empty() ? nullptr : scheduler().running().front().get();
      const int64_t before =
          oldest == nullptr ? 0 : oldest->num_computed_tokens + oldest->num_tokens();
      Step();
      if (oldest == nullptr || oldest->is_finished()) continue;
      ASSERT_GT(oldest->num_computed_tokens + oldest->num_tokens(), before);
    }
    ASSERT_EQ(ended().size(), 12u);
    EXPECT_EQ(cache().num_available_blocks(), cache().config().num_blocks);
  }
}

// What a fork will have to copy is promised to it: none is let in that has to step aside at once.
TEST_F(ScheduleTest, NoMoreSamplesForkThanCanCopyTheirLastBlock) {
  GenerateRequest request = Request(20, 1, 6);
  request.num_samples = 8;
  for (const int64_t num_blocks : {2, 3, 4, 6, 9}) {
    Start({.max_running = 8, .batch_tokens = 100, .context_tokens = 32}, num_blocks, 16);
    Add(request);
    while (has_work()) Step();
    EXPECT_EQ(ended().size(), 8u);
    EXPECT_EQ(scheduler().num_preemptions(), 0) << num_blocks << " blocks";
  }
}

TEST_F(ScheduleTest, SamplesForkWhereThereIsRoomAndWaitWhereThereIsNone) {
  GenerateRequest request = Request(6, 1, 5);
  request.num_samples = 4;
  Start({.max_running = 3, .batch_tokens = 100, .context_tokens = 20}, 100, 4);
  Add(request);
  Step();
  EXPECT_EQ(scheduler().running().size(), 3u);
  ASSERT_EQ(scheduler().waiting().size(), 1u);
  EXPECT_EQ(scheduler().waiting()[0]->sample_idx(), 3);
  while (has_work()) Step();
  EXPECT_EQ(ended().size(), 4u);
  Start({.max_running = 3, .batch_tokens = 100, .context_tokens = 12}, 3, 4);  // room for one
  Add(request);
  while (has_work()) Step();
  EXPECT_EQ(ended().size(), 4u);
}

}  // namespace
}  // namespace kvick
