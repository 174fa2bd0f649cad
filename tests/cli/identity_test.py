"""The promise: the same bits however the work is cut, on every implementation of the same numerics."""

import array
import itertools
import unittest

import kvick_cli
from kvick_cli import QUICK, CliTest, comma, inspect, isas, llamas, random_tokens

_BLOCKS = [("--block-tokens", "16"), ("--block-tokens", "64"), ("--contiguous",)]
_CHUNKS = [("--chunk", "1"), ("--chunk", "7"), ("--chunk", "64")]
_THREADS = [("-t", "1"), ("-t", "2")]
_NO_CACHE = ("--no-cache",)

_ALL_CUTS = [sum(parts, ()) for parts in itertools.product(_BLOCKS, _CHUNKS, _THREADS)]
_ALL_CUTS += [_NO_CACHE + threads for threads in _THREADS]
_SOME_CUTS = [("--block-tokens", "64", "--chunk", "7", "-t", "2"),
              ("--contiguous", "--chunk", "1", "-t", "1"), _NO_CACHE]

_NPY_HEADER_BYTES = 128


# Over 64, so that a second block of every size is begun.
_NUM_TOKENS = 18 if QUICK else 120


def _first_difference(a, b, vocab_size):
    x, y = (array.array("I", data[_NPY_HEADER_BYTES:]) for data in (a, b))
    differing = [i for i, (p, q) in enumerate(zip(x, y)) if p != q]
    if not differing:
        return "the headers differ"
    return (f"{len(differing)} of {len(x)} logits differ, "
            f"the first at position {differing[0] // vocab_size}")


class IdentityTest(CliTest):
    def check_isas(self, model, tokens, cuts, *options):
        """All cuts on every implementation: one file for each of the numerics."""
        for numerics in kvick_cli.numerics():
            found = {self.check_cuts(model, tokens, cuts, "--isa", isa, *options)
                     for isa in isas(numerics)}
            with self.subTest(model=model.name, numerics=numerics, options=options):
                self.assertEqual(len(found), 1, "implementations differ")

    def check_cuts(self, model, tokens, cuts, *options):
        vocab_size = inspect(model)["model"]["vocab_size"]
        first = self.logits(model, tokens, *options)
        self.assertEqual(len(first), _NPY_HEADER_BYTES + 4 * vocab_size * len(tokens))
        for cut in cuts:
            with self.subTest(model=model.name, options=" ".join(map(str, options + cut))):
                other = self.logits(model, tokens, *options, *cut)
                if other != first:
                    self.fail(_first_difference(first, other, vocab_size))
        return first

    def test_logits_however_cut(self):
        for model in llamas():
            tokens = random_tokens(model, _NUM_TOKENS, "identity")
            self.check_isas(model, tokens, _SOME_CUTS if QUICK else _ALL_CUTS)

    def test_logits_however_cut_in_each_number_type(self):
        cuts = _SOME_CUTS[:1] if QUICK else _SOME_CUTS
        for model in llamas():
            tokens = random_tokens(model, 20 if QUICK else 40, "types")
            for dtype in ("bf16", "f16", "f32"):
                self.check_isas(model, tokens, cuts, "-ctk", dtype)
            self.assertEqual(len({self.logits(model, tokens, "-ctk", dtype)
                                  for dtype in ("bf16", "f16", "f32")}), 3, "-ctk changes nothing")

    def test_logits_of_high_precision(self):
        cuts = _SOME_CUTS[:1] if QUICK else _SOME_CUTS
        for model in llamas():
            tokens = random_tokens(model, 20 if QUICK else 40, "precision")
            self.check_isas(model, tokens, cuts, "--precision", "high")
            changes = self.logits(model, tokens) != self.logits(model, tokens, "--precision", "high")
            has_bf16 = any(t["type"] == "BF16" for t in inspect(model)["tensors"])
            self.assertEqual(changes, has_bf16, "precision is of bf16 weights")

    # Attention merges partial results of 512 keys each: only longer texts have a second one.
    @unittest.skipIf(QUICK, "long")
    def test_logits_of_a_text_longer_than_one_part_of_the_attention(self):
        roomy = [m for m in llamas() if inspect(m)["model"]["context_tokens"] > 600]
        self.assertTrue(roomy)
        for model in roomy:
            self.check_isas(model, random_tokens(model, 550, "long"),
                            [cut for cut in _SOME_CUTS if cut != _NO_CACHE])
        tokens = random_tokens(roomy[0], 530, "long without a cache")
        self.check_cuts(roomy[0], tokens, [_NO_CACHE])

    def test_texts_in_a_batch_are_those_alone(self):
        lengths = [1, 5, 17] if QUICK else [1, 5, 70, 17, 33, 64, 2]
        cuts = _SOME_CUTS[:1] if QUICK else _SOME_CUTS
        sampled = ("--temp", 1, "--seed", 7)
        for model in llamas():
            prompts = [random_tokens(model, n, f"batch {n}") for n in lengths]
            for isa in isas():
                for cut in [(), *cuts]:
                    options = ("-m", model, "--isa", isa, "-c", 128, "-n", 12, "--ignore-eos",
                               *sampled, *cut)
                    given = [x for p in prompts for x in ("--tokens", comma(p))]
                    batch = self.run_json("generate", *options, *given)["results"]
                    self.assertEqual(len(batch), len(prompts))
                    if cut == ():
                        alone = [self.run_json("generate", *options, "--tokens", comma(p))
                                 for p in prompts]
                    for i, prompt in enumerate(prompts):
                        with self.subTest(model=model.name, isa=isa, cut=cut, text=i):
                            self.assertEqual(batch[i]["prompt_tokens"], prompt)
                            self.assertEqual(len(batch[i]["tokens"]), 12)
                            self.assertEqual(batch[i], {key: alone[i][key] for key in batch[i]})


if __name__ == "__main__":
    kvick_cli.main()
