"""Greedy continuations against those of a float64 computation, token for token."""

import json
import unittest

import kvick_cli
from kvick_cli import QUICK, CliTest, comma, golden_of, isas, models, shared

# Models with 16-bit weights run in high precision, with keys and values in f32: their goldens are of
# exact arithmetic.
_EXACT = ("-ctk", "f32", "--precision", "high")


def _golden_cases(max_sequences=None):
    """(model, sequences) of every model that has a file of goldens."""
    for model in models():
        golden = golden_of(model)
        if golden is not None:
            yield model, json.loads(golden.read_text())[:max_sequences]


def _has_16_bit_weights(model):
    return any(t["type"] in ("F16", "BF16") for t in kvick_cli.inspect(model)["tensors"])


class GoldenTest(CliTest):
    def test_every_sequence_on_every_implementation(self):
        for model, sequences in _golden_cases(max_sequences=1 if QUICK else None):
            options = _EXACT if _has_16_bit_weights(model) else ()
            for isa in isas():
                for i, golden in enumerate(sequences):
                    with self.subTest(model=model.name, isa=isa, sequence=i):
                        result = self.run_json(
                            "generate", "-m", model, "--tokens", comma(golden["prompt_tokens"]),
                            "-n", len(golden["tokens"]), "--ignore-eos", "--isa", isa, *options)
                        self.assertEqual(result["prompt_tokens"], golden["prompt_tokens"])
                        self.assertEqual(result["isa"], isa)
                        self.assertEqual(result["tokens"], golden["tokens"])

    def test_prompts_given_as_text(self):
        num_prompts = 0
        for model, sequences in _golden_cases():
            for golden in sequences:
                if kvick_cli.inspect(model)["tokenizer"] is None or "prompt" not in golden:
                    continue
                with self.subTest(model=model.name, prompt=golden["prompt"]):
                    result = self.run_json("generate", "-m", model, "-p", golden["prompt"],
                                           "-n", len(golden["tokens"]), "--ignore-eos")
                    self.assertEqual(result["prompt_tokens"], golden["prompt_tokens"])
                    self.assertEqual(result["tokens"], golden["tokens"])
                    num_prompts += 1
        self.assertGreater(num_prompts, 0)

    def test_the_story_reads_as_it_should(self):
        lines = shared("models", "README.md").read_text().splitlines()
        story = "\n".join(line[2:] for line in lines if line.startswith("> "))
        self.assertTrue(story.startswith("Once upon a time"))
        for isa in isas():
            with self.subTest(isa=isa):
                text = self.run_kvick("generate", "-m", kvick_cli.stories(), "-p",
                                      "Once upon a time", "-n", 200, "--temp", 0, "--isa",
                                      isa).stdout.decode()
                self.assertEqual(text[:len(story)], story)


if __name__ == "__main__":
    kvick_cli.main()
