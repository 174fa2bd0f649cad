#include "prove/prover.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/isa.h"
#include "base/threads.h"
#include "measure/read_limit.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr const char* kTexts[] = {"Once upon a time", "The", "To be, or not to be: that is the"};
constexpr int64_t kLengths[] = {5, 17, 40};

// Some texts; without a tokenizer some ids that a simple generator gives.
std::vector<std::vector<int32_t>> MakePrompts(const Model& model) {
  std::vector<std::vector<int32_t>> prompts;
  if (model.has_tokenizer()) {
    for (const char* text : kTexts) prompts.push_back(*model.Encode(text));
    return prompts;
  }
  uint32_t state = 1;
  for (const int64_t length : kLengths) {
    std::vector<int32_t>& prompt = prompts.emplace_back();
    for (int64_t i = 0; i < length; ++i) {
      state = state * 1664525u + 1013904223u;
      prompt.push_back(static_cast<int32_t>((state >> 8) % model.info().vocab_size));
    }
  }
  return prompts;
}

int64_t LongestPrompt(std::span<const std::vector<int32_t>> prompts) {
  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  return static_cast<int64_t>(longest);
}

// Two new tokens are a decode step, in which a bug can show; the texts of the sections need the
// rest.
Status CheckLengths(const ProofContext& context) {
  constexpr int64_t kLeastTokens = 2, kLeastContext = 128;
  if (context.options.num_tokens < kLeastTokens) {
    return Fail(ErrorCode::kInvalidArgument, "prove: {} new tokens, at least {} are wanted",
                context.options.num_tokens, kLeastTokens);
  }
  if (context.model.info().max_positions < kLeastContext) {
    return Fail(ErrorCode::kUnsupported,
                "prove: the model has a context of {} tokens, {} are wanted",
                context.model.info().max_positions, kLeastContext);
  }
  return {};
}

// A section for which the machine lacks the memory is one that does not hold.
Result<ProofSection> Run(Result<ProofSection> (*prove)(ProofContext&), ProofContext& context) {
  auto section = prove(context);
  if (section || section.error().code != ErrorCode::kExhausted) return section;
  return ProofSection{"", {}, {{"there is memory enough to try", section.error().message, false}}};
}

struct NamedSection {
  const char* name;
  const char* title;
  Result<ProofSection> (*prove)(ProofContext& context);
};

constexpr NamedSection kSections[] = {{"answers", "Answers", ProveAnswers},
                                      {"exactness", "Exactness", ProveExactness},
                                      {"accuracy", "Accuracy", ProveAccuracy},
                                      {"memory", "Memory", ProveMemory},
                                      {"speed", "Speed", ProveSpeed},
                                      {"stability", "Stability", ProveStability},
                                      {"bugs", "The four bugs", ProveBugsAreCaught},
                                      {"hidden_cost", "The hidden cost", ProveHiddenCost},
                                      {"serving", "Many requests", ProveServing}};

}  // namespace

SubjectOptions ProofContext::Subjects() const {
  SubjectOptions subjects;
  subjects.isa = options.isa;
  subjects.num_threads = options.num_threads;
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
  KVICK_ASSIGN_OR_RETURN(const Isa isa, ParseIsa(options.isa));
  Proof proof;
  proof.model = model.info();
  proof.isa = IsaName(isa);
  proof.num_threads = options.num_threads > 0 ? options.num_threads : NumUsableCores();
  if (options.inject) proof.injected = PlantedBugName(*options.inject);
  ProofContext context{model, options, proof, MakePrompts(model)};
  KVICK_RETURN_IF_ERROR(CheckLengths(context));
  context.num_tokens =
      std::min(options.num_tokens, model.info().max_positions - LongestPrompt(context.prompts));
  KVICK_ASSIGN_OR_RETURN(proof.read_gbps, MeasureReadBandwidth(proof.num_threads));
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
