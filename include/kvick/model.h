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

#include "kvick/exec.h"
#include "kvick/kv_cache.h"
#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

// The sizes of a Llama-family model, and its special tokens.
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
  int64_t max_positions = 0;  ///< tokens
  // Sequences of more tokens have other keys, all of them (longrope): a sequence that grows past it
  // must be computed again. 0: there is no such length.
  int64_t rope_switch_length = 0;
  std::vector<int64_t> windows;       ///< [num_layers], tokens, 0: none; empty: no layer has one
  std::string weight_format = "f32";  ///< of the attention matrices
  std::optional<int32_t> bos_id;
  // Any of them ends a completion. Ascending, all in the vocabulary.
  std::vector<int32_t> eos_ids;

  // The configuration of a cache for this model, in `dtype`. The caller sets its blocks and memory.
  KvConfig KvGeometry(DType dtype) const;
  // The default type of a cache: that of the weights, or bf16 where they are quantized.
  DType DefaultKvDType() const;
};

struct TextOptions {
  bool add_special = true;    ///< add the tokens that belong around a text, such as BOS
  bool parse_special = true;  ///< read "<s>" as the control token; false: as three characters
};

// An opened model. Immutable: any number of runners, on any threads, may share it.
class Model {
 public:
  // Opens a GGUF file or a Hugging Face folder. The weights stay in the mapped files, which must
  // not change while the model is open.
  //
  // A missing, unsupported or damaged tokenizer is not an error here, because token ids need none.
  // Its error is returned by tokenizer_status(), Encode and Decode.
  //
  // Errors  not_found, io
  //         corrupt: a file contradicts itself or its size
  //         unsupported: an architecture, a feature of it or a type of weights
  //         invalid_argument: `path` is one file of a folder
  // Cost    reads the metadata and the tokenizer; memory for norms, biases and the tokenizer
  static Result<std::unique_ptr<Model>> Open(const std::string& path);

  // Opens a GGUF file in memory. The bytes must outlive the model. `source` names them in messages.
  //
  // Errors  corrupt, unsupported: as Open
  static Result<std::unique_ptr<Model>> Parse(std::span<const std::byte> gguf,
                                              const std::string& source);

  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model();

  const ModelInfo& info() const;

  bool has_tokenizer() const;
  // Why there is no tokenizer: not_found where the model has none, corrupt or unsupported where it
  // cannot be read. No error where has_tokenizer().
  Status tokenizer_status() const;

  // Converts text to token ids.
  //
  // Errors  tokenizer_status();  exhausted: a limit of the tokenizer, as of a regular expression
  Result<std::vector<int32_t>> Encode(std::string_view text, const TextOptions& options = {}) const;

  // Converts token ids to text, as the beginning of a text. Control tokens have no text.
  //
  // Errors  tokenizer_status()
  Result<std::string> Decode(std::span<const int32_t> ids) const;

  struct Parts;  // for the library's own sources
  const Parts& parts() const { return *parts_; }

 private:
  explicit Model(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

// Converts the tokens of a completion to text as they are generated. The text comes in whole
// characters; U+FFFD replaces bytes that are not UTF-8. For a model without a tokenizer the text is
// the ids, each followed by a space.
class TextStream {
 public:
  // `model` must outlive it.
  explicit TextStream(const Model& model);
  TextStream(TextStream&& other) noexcept;
  ~TextStream();

  // Adds a token. Returns the characters that are complete now; the bytes of an incomplete
  // character are held back.
  std::string Append(int32_t token);
  // Returns what is held back. Call it once, after the last token.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct RunnerOptions {
  std::optional<DType> kv_dtype{};  ///< type of the caches to run on; nullopt: DefaultKvDType()
  int64_t max_batch_tokens = 512;   ///< most tokens in one Run, 1 to 2^31: sizes the memory
  int64_t max_sequences = 64;       ///< most chunks in one Run, 1 to 2^31
  ExecOptions exec{};
};

// New tokens of one sequence, and the plan that reserves their positions.
struct SequenceChunk {
  WritePlan* plan = nullptr;
  std::span<const int32_t> tokens;
  // Tokens of the whole sequence as far as they are known, such as those of a prompt of which this
  // is a part; less than what the plan ends with: that. See ModelInfo::rope_switch_length.
  int64_t length = 0;
};

// Which tokens Run computes logits for.
enum class LogitsOf {
  kLast,  ///< the last token of each chunk
  kAll,
};

// Runs forward passes: prefill, part of a prefill, decode, and any mix of them for sequences of
// different lengths.
//
// The bits of a token's logits depend on the token, the tokens before it, the weights, the type of
// the cache and the numerics, and on nothing else.
//
// Threads  one Run at a time: the object owns the memory that a pass works in
class ModelRunner {
 public:
  // `model` must outlive it.
  //
  // Errors  invalid_argument, unsupported: options out of range, names that contradict each other,
  //         an isa that this machine lacks
  //         exhausted: not enough memory
  static Result<std::unique_ptr<ModelRunner>> Create(const Model& model,
                                                     const RunnerOptions& options);

  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;
  ~ModelRunner();

  // Computes the tokens of all chunks and writes their keys and values to the plans. The caller
  // commits the plans. Until then the new tokens are not visible in the cache. After an error, drop
  // the plans.
  //
  // Shapes    logits [rows, vocab_size]: one row a chunk (kLast) or one row a token (kAll), in the
  //           order of `chunks`
  // Types     logits f32
  // Errors    invalid_argument: a token id that is not in the vocabulary, a number of tokens or
  //           chunks out of range, no plan, a plan of another cache or number of tokens, a cache of
  //           another geometry, or logits of another size
  // Cost      reads every weight once; allocates nothing
  // Requires  the plans are open plans of `cache`
  Status Run(KvCache& cache, std::span<const SequenceChunk> chunks, LogitsOf which,
             std::span<float> logits);

  // The same without a cache, for one sequence from position 0 on. Attention reads the keys and
  // values of this pass, rounded to kv_dtype. `length`: as SequenceChunk's.
  //
  // Shapes  logits [rows, vocab_size]: one row (kLast) or one row a token (kAll)
  // Errors  invalid_argument: as Run;  exhausted: not enough memory for the keys and values
  // Cost    allocates the keys and values of one layer
  Status RunUncached(std::span<const int32_t> tokens, LogitsOf which, std::span<float> logits,
                     int64_t length = 0);

  DType kv_dtype() const;
  std::string numerics() const;  ///< name and version: "canonical-1", "tiles-high-1"
  std::string_view isa() const;
  int num_threads() const;

 private:
  struct State;
  explicit ModelRunner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvick

#endif  // KVICK_MODEL_H_
