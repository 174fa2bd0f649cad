"""Logits against an independent float64 computation without a cache."""

import functools
import io
import pathlib
import sys
import unittest

import kvick_cli
from kvick_cli import QUICK, CliTest, inspect, isas, llamas, random_tokens

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
try:
    import numpy

    import llama_f64
except ImportError:
    numpy = None

# The largest relative error in 2-norms over all positions, by the weights' type. It is the rounding of
# keys and values, whose type follows that of the weights: bf16 for Q8_0.
_MAX_ERROR = {"F32": 1e-5, "F16": 2e-3, "BF16": 2.5e-2, "Q8_0": 2.5e-2}
# With keys and values in f32 and high precision: bf16 and quantized weights meet activations of 16 bits.
_MAX_ERROR_OF_HIGH = {"F32": 1e-5, "F16": 1e-5, "BF16": 1e-4, "Q8_0": 5e-4}
_NUM_TOKENS = 40 if QUICK else 120
_NUM_SEQUENCES = 1 if QUICK else 4


@functools.cache
def _oracle(model):
    return llama_f64.Llama(model)


def _weight_type(model):
    types = {t["type"] for t in inspect(model)["tensors"] if len(t["shape"]) == 2}
    (weight_type,) = types
    return weight_type


@unittest.skipIf(numpy is None, "no numpy for this Python")
class OracleTest(CliTest):
    def check(self, model, num_sequences, max_error, isas_to_run, *options):
        for i in range(num_sequences):
            tokens = random_tokens(model, _NUM_TOKENS, f"oracle {i}")
            exact = _oracle(model).logits(tokens)
            for isa in isas_to_run:
                with self.subTest(model=model.name, isa=isa, sequence=i, options=options):
                    data = self.logits(model, tokens, "--isa", isa, *options)
                    got = numpy.load(io.BytesIO(data))
                    self.assertEqual(got.dtype, numpy.dtype("float32"))
                    self.assertEqual(got.shape, exact.shape)
                    error = numpy.linalg.norm(got - exact) / numpy.linalg.norm(exact)
                    self.assertLessEqual(error, max_error)

    def test_logits_are_near_those_of_float64(self):
        for model in llamas():
            self.check(model, _NUM_SEQUENCES, _MAX_ERROR[_weight_type(model)], isas())

    def test_high_precision_with_an_f32_cache(self):
        for model in llamas():
            self.check(model, 1, _MAX_ERROR_OF_HIGH[_weight_type(model)], isas(), "-ctk", "f32",
                       "--precision", "high")


if __name__ == "__main__":
    kvick_cli.main()
