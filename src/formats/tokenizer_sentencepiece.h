#ifndef KVICK_FORMATS_TOKENIZER_SENTENCEPIECE_H_
#define KVICK_FORMATS_TOKENIZER_SENTENCEPIECE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/sentencepiece_model.h"
#include "formats/tokenizer.h"
#include "kvick/status.h"

namespace kvick {

// The tokenizer of a Hugging Face folder that has a tokenizer.model and no tokenizer.json. It gives
// the ids of the tokenizer that transformers converts the file to. tokenizer_config.json,
// added_tokens.json and special_tokens_map.json count, and may be absent.
//
// Errors  not_found, io: a file;  corrupt: a damaged one;  unsupported: a tokenizer_class other
//         than Llama's, Code Llama's and Gemma's, or a normalizer, which these do not have
Result<Tokenizer> TokenizerFromSentencePiece(const std::string& folder);

// The same from what the files hold. `config` is an object: tokenizer_config.json with the tokens
// of the other two.
Result<Tokenizer> TokenizerFromSentencePieceModel(SentencePieceModel model, nlohmann::json config);

// The merges of a BPE model: all pairs of pieces that make a third, the best score first, and of
// equal ones the longest left piece. Source  generate_merges in transformers
std::vector<MergeRule> SentencePieceMerges(const std::vector<SentencePieceModel::Piece>& pieces);

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_SENTENCEPIECE_H_
