#!/usr/bin/env python3
"""Writes the models of this folder: small Llamas with random weights, and what float64 says of them.

  make_models.py OUTPUT_FOLDER

Each model has a file NAME.greedy.json beside it: prompts, the tokens that greedy decoding in float64
continues them with, and at each step the gap between the best and the second logit. Prompts are drawn
until no gap is so small that rounding could choose another token. Needs numpy alone.
"""

import json
import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import llama_f64  # noqa: E402  (found through the path above)

_PROMPT_LENGTHS = [1, 12, 70, 130]
_NUM_NEW = 24
_MIN_DISTINCT = 8  # of the new tokens: a model that repeats itself tests little
_LOGIT_STD = 6.0

_COMMON = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
           "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "bos_token_id": 1, "eos_token_id": 2}

# name -> config, number type, number of shards, smallest gap between the two best logits
_FOLDERS = {
    "tiny-f32-hd128": ({
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 128, "vocab_size": 300,
        "max_position_embeddings": 131072, "tie_word_embeddings": False,
        "rope_scaling": {"type": "linear", "factor": 4.0}}, "F32", 1, 0.1),
    "tiny-f16-tied": ({
        "hidden_size": 96, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 6, "num_key_value_heads": 6, "head_dim": 16, "vocab_size": 320,
        "max_position_embeddings": 4096, "tie_word_embeddings": True}, "F16", 1, 0.1),
    "tiny-bf16-sharded": ({
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 288,
        "max_position_embeddings": 4096, "tie_word_embeddings": False, "rope_theta": 500000.0,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 64}},
        "BF16", 2, 0.2),
    "tiny-words-hf": ({
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 5,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8, "vocab_size": 512,
        "max_position_embeddings": 512, "tie_word_embeddings": True}, "F32", 1, 0.1),
}

# The pieces of the vocabulary of tiny-words are those that this text has most of.
_TEXT = """Once upon a time there was a small cache that kept what it had seen. Every day it kept a key
and a value for each word, and when a new word came it looked at all of them. One day the cache was
full. "What shall I do?" asked the cache. "Let go of the oldest words," said the clock, "for nobody
asks for them." So the cache let the oldest words go, and there was room for the new ones. But the
story that it told was not the same story any more. "That will not do," said the cache. "A story must
be the same story, however I keep it." From then on it kept whole blocks, and counted who needed them,
and every story came out as it would have come out without the cache at all. The end."""
_PROMPTS = ["Once upon a time", "The cache", "A story must be the same"]
_SPACE = "\u2581"  # SentencePiece's mark for a space


def tensor_shapes(config):
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    q = config["num_attention_heads"] * config["head_dim"]
    kv = config["num_key_value_heads"] * config["head_dim"]
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden)}
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        shapes |= {p + "input_layernorm.weight": (hidden,),
                   p + "self_attn.q_proj.weight": (q, hidden),
                   p + "self_attn.k_proj.weight": (kv, hidden),
                   p + "self_attn.v_proj.weight": (kv, hidden),
                   p + "self_attn.o_proj.weight": (hidden, q),
                   p + "post_attention_layernorm.weight": (hidden,),
                   p + "mlp.gate_proj.weight": (ffn, hidden),
                   p + "mlp.up_proj.weight": (ffn, hidden),
                   p + "mlp.down_proj.weight": (hidden, ffn)}
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    return shapes


def random_weights(config, rng):
    """What the layers add outweighs the embedding, or a tied model would repeat its last token."""
    weights = {}
    for name, shape in tensor_shapes(config).items():
        values = rng.standard_normal(shape)
        if "norm" in name:
            values = 1 + 0.1 * values
        elif "embed" in name or "lm_head" in name:
            values *= _LOGIT_STD / np.sqrt(shape[-1])
        else:
            values *= (12.0 if "o_proj" in name or "down_proj" in name else 1.0) / np.sqrt(shape[-1])
        weights[name] = values.astype(np.float32)
    return weights


def encode(values, dtype):
    if dtype == "BF16":  # rounds to nearest, ties to even
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()
    return values.astype({"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()


def write_safetensors(path, weights, dtype):
    header, body = {}, b""
    for name, values in weights.items():
        raw = encode(values, dtype)
        header[name] = {"dtype": dtype, "shape": list(values.shape),
                        "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def write_folder(folder, config, weights, dtype, num_shards):
    folder.mkdir(parents=True, exist_ok=True)
    torch_dtype = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[dtype]
    text = json.dumps(config | {"torch_dtype": torch_dtype}, indent=1)
    (folder / "config.json").write_text(text + "\n")
    if num_shards == 1:
        write_safetensors(folder / "model.safetensors", weights, dtype)
        return
    names = list(weights)
    weight_map = {}
    for i in range(num_shards):
        file_name = f"model-{i + 1:05}-of-{num_shards:05}.safetensors"
        part = names[i * len(names) // num_shards:(i + 1) * len(names) // num_shards]
        write_safetensors(folder / file_name, {name: weights[name] for name in part}, dtype)
        weight_map |= dict.fromkeys(part, file_name)
    index = {"metadata": {"total_size": 2 * sum(w.size for w in weights.values())},
             "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def gguf_value(value):
    """(type, bytes)"""
    if isinstance(value, str):
        text = value.encode()
        return 8, struct.pack("<Q", len(text)) + text
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    items = [gguf_value(item) for item in value]
    return 9, struct.pack("<IQ", items[0][0], len(items)) + b"".join(raw for _, raw in items)


def gguf_tensors(config, weights):
    """GGUF's names, and rows of q and k in its order: those that rotate together are neighbours."""
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm",
             "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q",
             "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    for name, values in weights.items():
        stem = name.removesuffix(".weight")
        if stem.startswith("model.layers."):
            _, _, layer, part = stem.split(".", 3)
            if part.endswith(("q_proj", "k_proj")):
                halves = values.reshape(-1, 2, config["head_dim"] // 2, values.shape[1])
                values = halves.swapaxes(1, 2).reshape(values.shape)
            yield f"blk.{layer}.{names[part]}.weight", values
        else:
            yield f"{names[stem]}.weight", values


def write_gguf(path, config, weights, pieces):
    texts, scores, kinds = zip(*pieces)
    meta = {"general.architecture": "llama", "general.name": path.stem, "general.file_type": 0,
            "llama.context_length": config["max_position_embeddings"],
            "llama.embedding_length": config["hidden_size"],
            "llama.block_count": config["num_hidden_layers"],
            "llama.feed_forward_length": config["intermediate_size"],
            "llama.attention.head_count": config["num_attention_heads"],
            "llama.attention.head_count_kv": config["num_key_value_heads"],
            "llama.attention.key_length": config["head_dim"],
            "llama.attention.value_length": config["head_dim"],
            "llama.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
            "llama.rope.dimension_count": config["head_dim"],
            "llama.rope.freq_base": config["rope_theta"],
            "llama.vocab_size": config["vocab_size"],
            "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": list(texts),
            "tokenizer.ggml.scores": list(scores), "tokenizer.ggml.token_type": list(kinds),
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.unknown_token_id": 0}
    tensors = list(gguf_tensors(config, weights))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    for key, value in meta.items():
        kind, raw = gguf_value(value)
        head += gguf_value(key)[1] + struct.pack("<I", kind) + raw
    body = b""
    for name, values in tensors:
        head += gguf_value(name)[1] + struct.pack("<I", values.ndim)
        head += struct.pack(f"<{values.ndim}Q", *values.shape[::-1])
        head += struct.pack("<IQ", 0, len(body))
        raw = encode(values, "F32")
        body += raw + bytes(-len(raw) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + body)


def make_pieces(vocab_size):
    """(text, score, type) of each: three control pieces, 256 bytes, then characters and merges."""
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    words = [list(_SPACE + word) for word in _TEXT.split()]
    found = []
    letters = sorted({letter for word in words for letter in word})
    while len(pieces) + len(found) + len(letters) < vocab_size:
        counts = {}
        for word in words:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        pair = max(counts, key=lambda p: (counts[p], p))
        if "".join(pair) not in found:
            found.append("".join(pair))
        words = [merge(word, pair) for word in words]
    # An earlier merge has a better score; characters come last, as SentencePiece writes them.
    return pieces + [(text, -float(i), 1) for i, text in enumerate(found + letters)]


def merge(word, pair):
    merged = []
    for part in word:
        if merged and (merged[-1], part) == pair:
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def tokenize(text, pieces):
    """SentencePiece: of all neighbours the merge with the best score, the leftmost of equals."""
    ids = {piece: i for i, (piece, _, kind) in enumerate(pieces) if kind == 1}
    parts = list(_SPACE + text.replace(" ", _SPACE))
    while True:
        joined = [(pieces[ids[a + b]][1], -i) for i, (a, b) in enumerate(zip(parts, parts[1:]))
                  if a + b in ids]
        if not joined:
            return [1] + [ids[part] for part in parts]
        i = -max(joined)[1]
        parts[i:i + 2] = [parts[i] + parts[i + 1]]


def golden(oracle, prompt, min_margin):
    """None where two logits come too near to each other, or the tokens repeat."""
    tokens, margins = [], []
    for _ in range(_NUM_NEW):
        (token,), (margin,) = oracle.greedy(prompt + tokens, 1)
        if margin < min_margin:
            return None
        tokens.append(token)
        margins.append(round(margin, 4))
    if len(set(tokens)) < _MIN_DISTINCT:
        return None
    return {"prompt_tokens": prompt, "tokens": tokens, "margins": margins}


def goldens(model, min_margin, rng):
    oracle = llama_f64.Llama(model)
    found = []
    for length in _PROMPT_LENGTHS:
        case = None
        while case is None:
            prompt = rng.integers(3, oracle.config["vocab_size"], length).tolist()
            case = golden(oracle, prompt, min_margin)
        found.append(case)
    return found


def write_goldens(path, cases):
    path.write_text("[" + ",\n ".join(json.dumps(case) for case in cases) + "]\n")


def text_goldens(model, pieces):
    oracle = llama_f64.Llama(model)
    for text in _PROMPTS:
        prompt = tokenize(text, pieces)
        tokens, margins = oracle.greedy(prompt, _NUM_NEW)
        yield {"prompt": text, "prompt_tokens": prompt, "tokens": tokens,
               "margins": [round(margin, 4) for margin in margins]}


def make_words(output, config, weights):
    """The same weights as a GGUF file with a tokenizer, and goldens of texts."""
    pieces = make_pieces(config["vocab_size"])
    model = output / "tiny-words.gguf"
    write_gguf(model, config, weights, pieces)
    return list(text_goldens(model, pieces))


def main():
    output = pathlib.Path(sys.argv[1])
    for name, (special, dtype, num_shards, min_margin) in _FOLDERS.items():
        config = _COMMON | special
        rng = np.random.default_rng(len(name))
        weights = random_weights(config, rng)
        write_folder(output / name, config, weights, dtype, num_shards)
        texts = make_words(output, config, weights) if name == "tiny-words-hf" else []
        cases = texts + goldens(output / name, min_margin, rng)
        write_goldens(output / f"{name.removesuffix('-hf')}.greedy.json", cases)


if __name__ == "__main__":
    main()
