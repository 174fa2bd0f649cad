#ifndef KVICK_MODEL_H_
#define KVICK_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/kv_cache.h"
#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

// The numbers of a Llama-family model.
struct ModelInfo {
  std::string architecture;
  std::string name;  ///< may be empty
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t max_positions = 0;         ///< tokens
  DType weight_dtype = DType::kF32;  ///< of the attention matrices
  std::optional<int32_t> bos_id;
  std::vector<int32_t> eos_ids;  ///< any of them ends a text; ascending

  // A cache of this geometry in `dtype`; blocks and memory are the caller's to choose.
  KvConfig KvGeometry(DType dtype) const;
  // What a cache holds by default: the weights' own type, bf16 where they are quantized.
  DType DefaultKvDType() const {
    return weight_dtype == DType::kQ8_0 ? DType::kBF16 : weight_dtype;
  }
};

struct TextOptions {
  bool add_special = true;    ///< the tokens that the model wants around a text, such as BOS
  bool parse_special = true;  ///< <s> in the text is the control token; false for text of others
};

// A model where it lies in its file: opening it takes no memory in proportion to the weights.
// Immutable; any number of runners, on any threads, may share it.
class Model {
 public:
  // A GGUF file, or a Hugging Face folder.
  // Errors  not_found, io;  corrupt: the file contradicts itself or its size;  unsupported
  static Result<std::unique_ptr<Model>> Open(const std::string& path);

  // A GGUF file that lies in memory, which must outlive the model. `source` names it in messages.
  // Errors  corrupt, unsupported
  static Result<std::unique_ptr<Model>> Parse(std::span<const std::byte> gguf,
                                              const std::string& source);

  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model();

  const ModelInfo& info() const;

  bool has_tokenizer() const;
  // The ids of a text. Errors  not_found: the model has no tokenizer
  Result<std::vector<int32_t>> Encode(std::string_view text, const TextOptions& options = {}) const;
  // The text of the ids, from its start on; control tokens stand for nothing.
  // Errors  not_found: the model has no tokenizer
  Result<std::string> Decode(std::span<const int32_t> ids) const;

  struct Parts;  // for the library's own sources
  const Parts& parts() const { return *parts_; }

 private:
  explicit Model(std::unique_ptr<Parts> parts);
  // Of the file that parts holds: tokenizer and numbers.
  static Result<std::unique_ptr<Model>> Complete(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

// The text of tokens that go on a text, as they come: in whole characters, what is no UTF-8
// replaced by U+FFFD. Without a tokenizer it is the ids, each with a space behind it.
class TextStream {
 public:
  // `model` must outlive it.
  explicit TextStream(const Model& model);
  TextStream(TextStream&& other) noexcept;
  ~TextStream();

  // What can be shown now. A character that is not whole yet waits.
  std::string Append(int32_t token);
  // What still waits, at the end.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct RunnerOptions {
  std::optional<DType> kv_dtype{};  ///< of the caches it runs on; nullopt: DefaultKvDType()
  int64_t max_batch_tokens = 512;   ///< tokens that one Run takes: the size of its memory
  int64_t max_sequences = 64;       ///< sequences that one Run takes
  std::string_view isa = "auto";    ///< a name that `kvick --version` lists
  int num_threads = 0;              ///< 0: the cores that the process may use
};

// The new tokens of one sequence.
struct SequenceChunk {
  WritePlan* plan = nullptr;
  std::span<const int32_t> tokens;
};

// Which tokens logits are wanted of.
enum class LogitsOf {
  kLast,  ///< the last token of each chunk
  kAll,
};

// One forward pass for everything: prefill, a chunk of one, a decode step, sequences of different
// lengths side by side. The bits of a token's logits depend on the token, its past, the weights and
// the isa, and on nothing else.
//
// Threads  one Run at a time: the working memory is the object's own
class ModelRunner {
 public:
  // `model` must outlive it.
  // Errors  invalid_argument, unsupported: options that cannot be;  exhausted: not that much
  // memory. The string of options.isa is read during the call alone.
  static Result<std::unique_ptr<ModelRunner>> Create(const Model& model,
                                                     const RunnerOptions& options);

  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;
  ~ModelRunner();

  // Computes the chunks' tokens and writes their keys and values to their plans. Committing them is
  // the caller's: until then nothing is visible, and after an error nothing should be.
  //
  // Shapes    logits [rows, vocab_size] f32: a row a chunk (kLast) or a row a token (kAll), in
  // order Errors    invalid_argument: a token outside of the vocabulary, too many tokens or chunks,
  // not as
  //           many tokens as a plan has, a cache of another geometry, logits of another size
  // Cost      reads every weight once;  allocates nothing
  // Requires  the plans are open ones of `cache`
  Status Run(KvCache& cache, std::span<const SequenceChunk> chunks, LogitsOf which,
             std::span<float> logits);

  // The same without a cache: the tokens are a whole text from position 0 on, and attention reads
  // the keys and values of this very pass, rounded to kv_dtype.
  Status RunUncached(std::span<const int32_t> tokens, LogitsOf which, std::span<float> logits);

  DType kv_dtype() const;
  std::string_view isa() const;
  int num_threads() const;

 private:
  struct State;
  explicit ModelRunner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvick

#endif  // KVICK_MODEL_H_
