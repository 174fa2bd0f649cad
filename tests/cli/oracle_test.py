"""Logits against an independent float64 computation without a cache."""

import functools
import importlib.util
import io
import unittest

import kvick_cli
from kvick_cli import QUICK, CliTest, inspect, isas, models, random_tokens, shared

try:
    import numpy
except ImportError:
    numpy = None

# The most relative error in 2-norms over all positions, by the weights' type.
_MOST_ERROR = {"F32": 1e-5, "F16": 2e-3, "BF16": 2.5e-2}
_NUM_TOKENS = 40 if QUICK else 120
_NUM_SEQUENCES = 1 if QUICK else 4


@functools.cache
def _oracle(folder):
    path = shared("oracle", "llama_f64.py")
    spec = importlib.util.spec_from_file_location("llama_f64", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Llama(folder)


def _weight_type(model):
    types = {t["type"] for t in inspect(model)["tensors"] if len(t["shape"]) == 2}
    (weight_type,) = types
    return weight_type


def _oracle_folder(model):
    """The oracle reads folders: that of the same weights."""
    return model if model.is_dir() else model.with_name(f"{model.stem}-hf")


@unittest.skipIf(numpy is None, "no numpy for this Python")
class OracleTest(CliTest):
    def test_logits_are_near_those_of_float64(self):
        for model in models():
            most_error = _MOST_ERROR[_weight_type(model)]
            for i in range(_NUM_SEQUENCES):
                tokens = random_tokens(model, _NUM_TOKENS, f"oracle {i}")
                exact = _oracle(_oracle_folder(model)).logits(tokens)
                for isa in isas():
                    with self.subTest(model=model.name, isa=isa, sequence=i):
                        got = numpy.load(io.BytesIO(self.logits(model, tokens, "--isa", isa)))
                        self.assertEqual(got.dtype, numpy.dtype("float32"))
                        self.assertEqual(got.shape, exact.shape)
                        error = numpy.linalg.norm(got - exact) / numpy.linalg.norm(exact)
                        self.assertLessEqual(error, most_error)


if __name__ == "__main__":
    kvick_cli.main()
