"""Quantized weights of every format: exact logits, and the same bits however the work is cut."""

import array
import json
import math
import unittest

import kvick_cli
from kvick_cli import QUICK, CliTest, isas

# Activations of 16 bits, keys and values in f32.
_MAX_ERROR = 5e-4
_NPY_HEADER_BYTES = 128
_CUTS = [("--block-tokens", "16", "--chunk", "7", "-t", "2"), ("--contiguous", "--chunk", "1", "-t", "1"),
         ("--no-cache",)]


def _numbers(npy):
    return array.array("f", npy[_NPY_HEADER_BYTES:])


def _relative_error(got, exact):
    difference = math.fsum((a - b) ** 2 for a, b in zip(got, exact))
    return math.sqrt(difference / math.fsum(b * b for b in exact))


class QuantizedTest(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder_of_files = kvick_cli.shared("quant")
        cls.index = json.loads((cls.folder_of_files / "index.json").read_text())
        cls.models = sorted(cls.folder_of_files.glob("*.gguf"))
        cls.tokens = cls.index["prompt_tokens"]

    def test_every_file_is_here(self):
        self.assertEqual(len(self.models), len(self.index["files"]))

    def test_logits_are_near_those_of_the_exact_weights(self):
        for model in self.models:
            with self.subTest(model=model.name):
                exact = _numbers(model.with_suffix(".npy").read_bytes())
                width = len(exact) // len(self.index["positions"])
                all_logits = _numbers(self.logits(model, self.tokens, "-ctk", "f32"))
                got = array.array("f")
                for position in self.index["positions"]:
                    got += all_logits[position * width:(position + 1) * width]
                self.assertEqual(len(got), len(exact))
                self.assertLessEqual(_relative_error(got, exact), _MAX_ERROR)

    def test_the_same_bits_however_cut_on_every_implementation(self):
        for model in self.models:
            for numerics in kvick_cli.numerics():
                names = isas(numerics)[:1] if QUICK else isas(numerics)
                found = {self.logits(model, self.tokens, "--isa", isa, *cut)
                         for isa in names for cut in [(), *_CUTS]}
                self.assertEqual(len(found), 1, f"{model.name}, {numerics}: bits differ")


if __name__ == "__main__":
    kvick_cli.main()
