#!/usr/bin/env python3
"""The oracle of the tests: a forward pass of the Llama family in float64, in plain numpy.

It has no KV cache: it computes the whole sequence anew for every token that it predicts, so no
fault of a cache can hide in it. The two halves of a head rotate together, as in Hugging Face.

  llama_f64.py MODEL --tokens 1,5,9 --new 32       greedy token ids, one line of JSON
  llama_f64.py MODEL --tokens 1,5,9 --logits OUT   float64 logits [T, vocabulary] as OUT.npy

MODEL is a folder with config.json and *.safetensors, or a GGUF file of F32, F16, BF16 or Q8_0
tensors. Needs numpy alone.
"""

import argparse
import json

import numpy as np

import weights


def _inverse_frequencies(config, head_dim):
    theta = config.get("rope_theta", 10000.0)
    inverse = theta ** -(np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "linear":
        return inverse / scaling["factor"]
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        wavelength = 2 * np.pi / inverse
        ratio = scaling["original_max_position_embeddings"] / wavelength
        smooth = np.clip((ratio - low) / (high - low), 0.0, 1.0)
        return (1 - smooth) * inverse / scaling["factor"] + smooth * inverse
    if kind != "default":
        raise ValueError(f"rope_scaling: expected linear, llama3 or none, got {kind!r}")
    return inverse


class Llama:
    def __init__(self, path):
        self.config, self.weights = weights.read_model(path)
        self.num_heads = self.config["num_attention_heads"]
        self.num_kv_heads = self.config.get("num_key_value_heads", self.num_heads)
        self.head_dim = (self.config.get("head_dim")
                         or self.config["hidden_size"] // self.num_heads)
        self.frequencies = _inverse_frequencies(self.config, self.head_dim)

    def _norm(self, x, name):
        mean_square = (x * x).mean(-1, keepdims=True)
        return x / np.sqrt(mean_square + self.config["rms_norm_eps"]) * self.weights[name]

    def _project(self, x, name):
        y = x @ self.weights[name + ".weight"].T
        bias = self.weights.get(name + ".bias")
        return y if bias is None else y + bias

    def _rotate(self, x):
        """x: [T, heads, head_dim]"""
        angle = np.arange(len(x), dtype=np.float64)[:, None] * self.frequencies
        cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def _attention(self, h, name):
        def heads(which, num_heads):
            return self._project(h, f"{name}{which}_proj").reshape(-1, num_heads, self.head_dim)

        q = self._rotate(heads("q", self.num_heads))
        k = self._rotate(heads("k", self.num_kv_heads))
        v = heads("v", self.num_kv_heads)
        mask = np.triu(np.full((len(h), len(h)), -np.inf), 1)
        out = np.empty_like(q)
        for head in range(self.num_heads):
            kv_head = head * self.num_kv_heads // self.num_heads
            scores = q[:, head] @ k[:, kv_head].T / np.sqrt(self.head_dim) + mask
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = shares / shares.sum(-1, keepdims=True) @ v[:, kv_head]
        return self._project(out.reshape(len(h), -1), name + "o_proj")

    def _mlp(self, h, name):
        gate = self._project(h, name + "gate_proj")
        return self._project(gate / (1 + np.exp(-gate)) * self._project(h, name + "up_proj"),
                             name + "down_proj")

    def logits(self, tokens):
        """Of every position: [T, vocabulary]."""
        x = self.weights["model.embed_tokens.weight"][np.asarray(tokens)]
        for i in range(self.config["num_hidden_layers"]):
            layer = f"model.layers.{i}."
            x = x + self._attention(self._norm(x, layer + "input_layernorm.weight"),
                                    layer + "self_attn.")
            x = x + self._mlp(self._norm(x, layer + "post_attention_layernorm.weight"),
                              layer + "mlp.")
        tied = self.config.get("tie_word_embeddings")
        head = "model.embed_tokens.weight" if tied else "lm_head.weight"
        return self._norm(x, "model.norm.weight") @ self.weights[head].T

    def greedy(self, prompt, num_new):
        """(new tokens, at each step the gap between the best and the second logit)"""
        tokens, margins = list(prompt), []
        for _ in range(num_new):
            last = self.logits(tokens)[-1]
            second, best = np.sort(last)[-2:]
            tokens.append(int(last.argmax()))
            margins.append(float(best - second))
        return tokens[len(prompt):], margins


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--new", type=int, default=0)
    parser.add_argument("--logits")
    args = parser.parse_args()
    tokens = [int(token) for token in args.tokens.split(",")]
    model = Llama(args.model)
    if args.logits:
        np.save(args.logits, model.logits(tokens))
    else:
        print(json.dumps(model.greedy(tokens, args.new)[0]))


if __name__ == "__main__":
    main()
