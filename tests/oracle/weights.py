"""Reads the config and the weights of a model, as float64, from a Hugging Face folder or a GGUF file.

Both give the names, the shapes and the order of rows that Hugging Face uses, so that llama_f64.py
knows one layout alone. Written apart from kvick's own readers: a fault in one does not hide in the
other.
"""

import json
import pathlib
import struct

import numpy as np

_GGUF_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
                 11: "<q", 12: "<d"}
_GGUF_STRING, _GGUF_ARRAY = 8, 9

_TENSOR_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm",
                 "output": "lm_head"}
_LAYER_NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
                "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
                "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
                "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def read_model(path):
    """(config with the keys of config.json, {tensor name: float64 array})"""
    path = pathlib.Path(path)
    return _read_folder(path) if path.is_dir() else _read_gguf(path)


def _bf16(raw):
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)


def _q8_0(raw):
    """Blocks of one float16 scale and 32 signed bytes."""
    blocks = np.frombuffer(raw, np.dtype([("scale", "<f2"), ("values", "i1", 32)]))
    return blocks["scale"][:, None].astype(np.float64) * blocks["values"]


def _read_folder(folder):
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors.update(_read_safetensors(path))
    return json.loads((folder / "config.json").read_text()), tensors


def _read_safetensors(path):
    data = path.read_bytes()
    body = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:body]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[body + begin:body + end]
        if entry["dtype"] == "BF16":
            values = _bf16(raw)
        else:
            values = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[entry["dtype"]])
        tensors[name] = values.astype(np.float64).reshape(entry["shape"])
    return tensors


class _GgufReader:
    def __init__(self, data):
        self.data = data
        self.place = 0

    def scalar(self, kind):
        form = _GGUF_SCALARS[kind]
        (value,) = struct.unpack_from(form, self.data, self.place)
        self.place += struct.calcsize(form)
        return value

    def u32(self):
        return self.scalar(4)

    def u64(self):
        return self.scalar(10)

    def string(self):
        size = self.u64()
        self.place += size
        return self.data[self.place - size:self.place].decode()

    def value(self, kind):
        if kind == _GGUF_STRING:
            return self.string()
        if kind == _GGUF_ARRAY:
            item_kind, num_items = self.u32(), self.u64()
            return [self.value(item_kind) for _ in range(num_items)]
        return self.scalar(kind)


def _read_gguf(path):
    reader = _GgufReader(path.read_bytes())
    if reader.data[:4] != b"GGUF":
        raise ValueError(f"{path}: expected the bytes GGUF, got {reader.data[:4]}")
    reader.place = 8
    num_tensors, num_keys = reader.u64(), reader.u64()
    meta = {}
    for _ in range(num_keys):
        key = reader.string()
        meta[key] = reader.value(reader.u32())
    entries = []
    for _ in range(num_tensors):
        name = reader.string()
        shape = [reader.u64() for _ in range(reader.u32())][::-1]
        entries.append((name, shape, reader.u32(), reader.u64()))
    alignment = meta.get("general.alignment", 32)
    body = -(-reader.place // alignment) * alignment
    config = _gguf_config(meta, {name for name, *_ in entries})
    tensors = {}
    for name, shape, kind, offset in entries:
        values = _gguf_values(reader.data, body + offset, int(np.prod(shape)), kind)
        tensors[_hf_name(name)] = _hf_rows(values.astype(np.float64).reshape(shape), name, config)
    return config, tensors


def _gguf_values(data, begin, num_values, kind):
    num_bytes = {0: 4 * num_values, 1: 2 * num_values, 30: 2 * num_values,
                 8: num_values // 32 * 34}[kind]
    raw = data[begin:begin + num_bytes]
    if kind == 8:
        return _q8_0(raw)
    return _bf16(raw) if kind == 30 else np.frombuffer(raw, {0: "<f4", 1: "<f2"}[kind])


def _gguf_config(meta, names):
    heads = meta["llama.attention.head_count"]
    hidden = meta["llama.embedding_length"]
    return {
        "num_hidden_layers": meta["llama.block_count"],
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": meta.get("llama.attention.head_count_kv", heads),
        "head_dim": meta.get("llama.attention.key_length", hidden // heads),
        "rms_norm_eps": meta["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": meta.get("llama.rope.freq_base", 10000.0),
        "tie_word_embeddings": "output.weight" not in names,
    }


def _hf_name(name):
    parts = name.split(".")
    if parts[0] != "blk":
        return f"{_TENSOR_NAMES[parts[0]]}.{parts[1]}"
    return f"model.layers.{parts[1]}.{_LAYER_NAMES[parts[2]]}.{parts[3]}"


def _hf_rows(values, name, config):
    """Undoes what GGUF does to q and k: there the two rows that rotate together are neighbours."""
    heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}
    part = name.split(".")[2] if name.startswith("blk.") else ""
    if part not in heads:
        return values
    num_heads = config[heads[part]]
    pairs = values.reshape(num_heads, config["head_dim"] // 2, 2, -1)
    return pairs.swapaxes(1, 2).reshape(values.shape)
