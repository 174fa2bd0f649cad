#!/usr/bin/env python3
"""SHA-256 of logits, as they were recorded: the same bits on every machine and every implementation.

The recorded files hold lines such as sha256sum writes. What is hashed are the f32 logits of fixed
tokens, in the order of positions.

  data/demo.sha256          "HASH  NUMERICS": the model in the program, 120 tokens
  tests/data/logits.sha256  "HASH  NUMERICS MODEL CACHE_TYPE NUM_TOKENS": the models of tests/data,
                            shared/models and shared/quant

Numerics are a name and a version. Whatever changes their bits is another version, in
src/base/exec.cc. To record what has no hash yet, and to forget the versions that the program no
longer has:

  KVICK_BINARY=build/release/kvick tests/cli/recorded_bits_test.py --record

A hash that is recorded is never replaced.
"""

import hashlib
import pathlib
import sys
import tempfile
import unittest

import kvick_cli
from kvick_cli import QUICK, CliTest, comma, inspect, isas, models, quantized_models

_DEMO = kvick_cli.data().parents[1] / "data" / "demo.gguf"
_DEMO_FILE = _DEMO.with_suffix(".sha256")
_MODELS_FILE = kvick_cli.data("logits.sha256")
_NPY_HEADER_BYTES = 128
_NUM_TOKENS = 120
# Attention merges partial results of 512 keys each.
_NUM_TOKENS_OF_LONG = 600


def _fixed_tokens(num_tokens, vocab_size):
    """As FixedTokens of src/prove/prover.cc."""
    tokens, state = [], 1
    for _ in range(num_tokens):
        state = (state * 1664525 + 1013904223) % 2**32
        tokens.append((state >> 8) % vocab_size)
    return tokens


class _Case:
    """Logits to be hashed."""

    def __init__(self, model, cache_type, num_tokens):
        self.model, self.cache_type, self.num_tokens = model, cache_type, num_tokens

    def key(self, numerics):
        if self.model == _DEMO:
            return numerics
        return f"{numerics} {self.model.name} {self.cache_type} {self.num_tokens}"

    def has_bf16_weights(self):
        return any(t["type"] == "BF16" for t in inspect(self.model)["tensors"])


def _cases():
    cases = [_Case(_DEMO, "auto", _NUM_TOKENS)]
    for model in models():
        context = inspect(model)["model"]["context_tokens"]
        num_tokens = min(context, _NUM_TOKENS)
        cases += [_Case(model, "auto", num_tokens), _Case(model, "f32", num_tokens)]
        if context >= _NUM_TOKENS_OF_LONG and not QUICK:
            cases.append(_Case(model, "auto", _NUM_TOKENS_OF_LONG))
    return cases + [_Case(model, "auto", _NUM_TOKENS) for model in quantized_models()]


def _numerics_options():
    return [("--numerics", numerics, "--precision", precision)
            for numerics in kvick_cli.numerics() for precision in ("standard", "high")]


def _read(path):
    """{key: hash}"""
    lines = path.read_text().splitlines() if path.exists() else []
    return {key: sha256 for sha256, key in (line.split("  ", 1) for line in lines)}


class RecordedBitsTest(CliTest):
    def hash_of(self, case, *options):
        """(the name of the numerics, the hash)"""
        vocab_size = inspect(case.model)["model"]["vocab_size"]
        path = self.folder / "logits.npy"
        made = self.run_json("logits", "-m", case.model, "-ctk", case.cache_type, "--tokens",
                             comma(_fixed_tokens(case.num_tokens, vocab_size)), "-o", path, *options)
        self.assertEqual(made["shape"], [case.num_tokens, vocab_size])
        return made["numerics"], hashlib.sha256(path.read_bytes()[_NPY_HEADER_BYTES:]).hexdigest()

    def hash_on_all(self, case, options):
        """That of all implementations of the numerics. Only with bf16 weights does precision matter."""
        names = isas(options[1])
        if QUICK or (options[3] == "high" and not case.has_bf16_weights()):
            names = names[:1]
        found = {isa: self.hash_of(case, *options, "--isa", isa) for isa in names}
        self.assertEqual(len(set(found.values())), 1, found)
        return next(iter(found.values()))

    def test_logits_are_those_that_were_recorded(self):
        recorded = {**_read(_DEMO_FILE), **_read(_MODELS_FILE)}
        for case in _cases():
            for options in _numerics_options():
                with self.subTest(model=str(case.model), cache=case.cache_type,
                                  tokens=case.num_tokens, options=" ".join(options)):
                    numerics, sha256 = self.hash_on_all(case, options)
                    self.assertEqual(recorded.get(case.key(numerics)), sha256)


def _compute_all():
    """{path of a recorded file: {key: hash}}, and the names of the numerics"""
    maker = RecordedBitsTest()
    computed, names = {_DEMO_FILE: {}, _MODELS_FILE: {}}, set()
    with tempfile.TemporaryDirectory(prefix="kvick-test-") as folder:
        maker.folder = pathlib.Path(folder)
        for case in _cases():
            for options in _numerics_options():
                numerics, sha256 = maker.hash_on_all(case, options)
                names.add(numerics)
                path = _DEMO_FILE if case.model == _DEMO else _MODELS_FILE
                computed[path][case.key(numerics)] = sha256
    return computed, names


def _without_version(numerics):
    return numerics.rsplit("-", 1)[0]


def _record():
    computed, names = _compute_all()
    kinds = {_without_version(name) for name in names}
    for path, hashes in computed.items():
        recorded = _read(path)
        changed = [key for key, sha256 in hashes.items() if recorded.get(key, sha256) != sha256]
        if changed:
            sys.exit(f"{path}: other bits than recorded: {', '.join(changed)}\n"
                     "Count up the version of the numerics in src/base/exec.cc, or find the fault.")
        for key, sha256 in recorded.items():
            numerics = key.split()[0]
            if numerics in names or _without_version(numerics) not in kinds:
                hashes.setdefault(key, sha256)
        path.write_text("".join(f"{hashes[key]}  {key}\n" for key in sorted(hashes)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        _record()
    else:
        kvick_cli.main()
