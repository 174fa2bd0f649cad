#include "prove/prover.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/exec.h"
#include "base/isa.h"
#include "measure/processor_name.h"
#include "measure/read_limit.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr std::string_view kMemoryExplanation =
    "This machine has too little free memory to try. This says nothing about the cache, so the "
    "claim "
    "neither holds nor fails.";

constexpr const char* kTexts[] = {"Once upon a time", "The", "To be, or not to be: that is the"};
constexpr int64_t kLengths[] = {5, 17, 40};

// Token ids of some texts, or, without a tokenizer, pseudo-random ids.
std::vector<std::vector<int32_t>> MakePrompts(const Model& model) {
  std::vector<std::vector<int32_t>> prompts;
  if (model.has_tokenizer()) {
    for (const char* text : kTexts) prompts.push_back(*model.Encode(text));
    return prompts;
  }
  const std::vector<int32_t> tokens =
      FixedTokens(std::accumulate(std::begin(kLengths), std::end(kLengths), int64_t{0}),
                  model.info().vocab_size);
  for (auto next = tokens.begin(); const int64_t length : kLengths) {
    prompts.emplace_back(next, next + length);
    next += length;
  }
  return prompts;
}

int64_t LongestPrompt(std::span<const std::vector<int32_t>> prompts) {
  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  return static_cast<int64_t>(longest);
}

// Two new tokens take one decode step, in which a bug can show. The context must hold the texts of
// all sections.
Status CheckLengths(const ProofContext& context) {
  constexpr int64_t kMinTokens = 2, kMinContext = 128;
  if (context.options.num_tokens < kMinTokens) {
    return Fail(ErrorCode::kInvalidArgument, "prove: new tokens: expected at least {}, got {}",
                kMinTokens, context.options.num_tokens);
  }
  if (context.model.info().max_positions < kMinContext) {
    return Fail(ErrorCode::kUnsupported,
                "prove: context of the model: expected at least {} tokens, got {}", kMinContext,
                context.model.info().max_positions);
  }
  return {};
}

// A section for which memory is insufficient is not judged.
Result<ProofSection> Run(Result<ProofSection> (*prove)(ProofContext&), ProofContext& context) {
  auto section = prove(context);
  if (section || section.error().code != ErrorCode::kExhausted) return section;
  return ProofSection{"", {}, {NotJudged("everything in this section", section.error())}};
}

// Gigabytes per second; 0 if memory is insufficient to measure it.
Result<double> ReadBandwidth(int num_threads) {
  auto gbps = MeasureReadBandwidth(num_threads);
  if (gbps || gbps.error().code != ErrorCode::kExhausted) return gbps;
  return 0.0;
}

struct NamedSection {
  const char* name;
  const char* title;
  Result<ProofSection> (*prove)(ProofContext& context);
};

constexpr NamedSection kSections[] = {{"answers", "Answers", ProveAnswers},
                                      {"exactness", "Exactness", ProveExactness},
                                      {"machines", "Every machine", ProveMachines},
                                      {"accuracy", "Accuracy", ProveAccuracy},
                                      {"memory", "Memory", ProveMemory},
                                      {"speed", "Speed", ProveSpeed},
                                      {"stability", "Stability", ProveStability},
                                      {"bugs", "The four bugs", ProveBugsAreCaught},
                                      {"hidden_cost", "The hidden cost", ProveHiddenCost},
                                      {"serving", "Many requests", ProveServing}};

}  // namespace

std::vector<int32_t> FixedTokens(int64_t num_tokens, int64_t vocab_size) {
  std::vector<int32_t> tokens;
  uint32_t state = 1;
  for (int64_t i = 0; i < num_tokens; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>((state >> 8) % vocab_size));
  }
  return tokens;
}

int64_t NumWeights(const ModelInfo& m) {
  const int64_t attention = 2 * m.hidden_size * m.head_dim * (m.num_heads + m.num_kv_heads);
  const int64_t layer = attention + 3 * m.hidden_size * m.intermediate_size;
  return m.num_layers * layer + m.vocab_size * m.hidden_size;
}

SubjectOptions ProofContext::Subjects() const {
  SubjectOptions subjects;
  subjects.exec = options.exec;
  for (const auto& prompt : prompts) {
    subjects.context_tokens += static_cast<int64_t>(prompt.size()) + num_tokens;
  }
  return subjects;
}

std::vector<int32_t> ProofContext::LongText(int64_t length) const {
  std::vector<int32_t> text;
  while (std::ssize(text) < length) {
    for (const auto& prompt : prompts) text.insert(text.end(), prompt.begin(), prompt.end());
  }
  text.resize(static_cast<size_t>(length));
  return text;
}

Claim NotJudged(std::string statement, const Error& error) {
  return {std::move(statement), error.message, Verdict::kNotJudged, kMemoryExplanation};
}

Result<Claim> JudgeIfMemorySuffices(std::string statement, Result<Claim> claim) {
  if (claim || claim.error().code != ErrorCode::kExhausted) return claim;
  return NotJudged(std::move(statement), claim.error());
}

KvConfig Llama3_8BGeometry() {
  KvConfig config;
  config.num_layers = 32;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.dtype = DType::kBF16;
  return config;
}

Status AppendOnes(KvCache& cache, SequenceId sequence, int64_t num_tokens) {
  constexpr int64_t kStep = 128;
  const KvLayout& layout = cache.layout();
  const std::vector<float> ones(static_cast<size_t>(kStep * layout.num_kv_heads * layout.head_dim),
                                1.0f);
  for (int64_t i = 0; i < num_tokens; i += kStep) {
    const int64_t num = std::min(kStep, num_tokens - i);
    const TensorView rows = DenseF32(ones.data(), {num, layout.num_kv_heads, layout.head_dim});
    KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache.Reserve(sequence, num));
    for (int64_t layer = 0; layer < layout.num_layers; ++layer) {
      KVICK_RETURN_IF_ERROR(cache.Write(plan, layer, rows, rows));
    }
    KVICK_RETURN_IF_ERROR(cache.Commit(std::move(plan)));
  }
  return {};
}

Result<Proof> Prove(const Model& model, const ProveOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const Exec exec, MakeExec(options.exec));
  Proof proof;
  proof.model = model.info();
  proof.processor = ProcessorName();
  proof.numerics = NumericsName(exec);
  proof.isa = IsaName(exec.isa);
  proof.num_threads = exec.num_threads;
  if (options.inject) proof.injected = PlantedBugName(*options.inject);
  ProofContext context{model, options, proof, MakePrompts(model)};
  KVICK_RETURN_IF_ERROR(CheckLengths(context));
  context.num_tokens =
      std::min(options.num_tokens, model.info().max_positions - LongestPrompt(context.prompts));
  KVICK_ASSIGN_OR_RETURN(proof.read_gbps, ReadBandwidth(proof.num_threads));
  for (const NamedSection& named : kSections) {
    if (options.on_section) options.on_section(named.title);
    KVICK_ASSIGN_OR_RETURN(ProofSection section, Run(named.prove, context));
    section.name = named.name;
    section.title = named.title;
    proof.sections.push_back(std::move(section));
  }
  return proof;
}

}  // namespace kvick
