"""Token ids against those of other programs, and back to the text."""

import json

import kvick_cli
from kvick_cli import CliTest, comma, shared


def _golden_cases():
    """(tokenizer, lines of {"text", "ids"})"""
    folder = shared("tokenizers")
    cases = [(golden.with_suffix(".gguf"), golden) for golden in sorted(folder.glob("*.jsonl"))]
    cases.append((folder / "llama3-hf", folder / "llama-bpe.jsonl"))
    for model, golden in cases:
        yield model, [json.loads(line) for line in golden.read_text().split("\n") if line]


def _lines(values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


class TokenizerTest(CliTest):
    def test_every_line_gives_the_ids(self):
        for model, goldens in _golden_cases():
            self.assertTrue(goldens)
            done = self.run_kvick("tokenize", "-m", model, "--jsonl", "--no-special",
                                  stdin=_lines({"text": golden["text"]} for golden in goldens))
            got = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(len(got), len(goldens))
            for golden, ids in zip(goldens, got):
                with self.subTest(model=model.name, text=golden["text"]):
                    self.assertEqual(ids, golden["ids"])

    def test_the_ids_give_the_text_back(self):
        for model, goldens in _golden_cases():
            done = self.run_kvick("tokenize", "-m", model, "--jsonl", "--decode",
                                  stdin=_lines(golden["ids"] for golden in goldens))
            got = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(len(got), len(goldens))
            for golden, line in zip(goldens, got):
                with self.subTest(model=model.name, text=golden["text"]):
                    self.assertEqual(line, {"text": golden["text"]})

    def test_the_whole_of_stdin_is_one_text(self):
        for model, goldens in _golden_cases():
            longest = max(goldens, key=lambda golden: len(golden["text"]))
            with self.subTest(model=model.name):
                stdin = longest["text"].encode()
                plain = self.run_kvick("tokenize", "-m", model, "--no-special", stdin=stdin)
                self.assertEqual(plain.stdout.decode(), comma(longest["ids"]) + "\n")
                self.assertEqual(
                    self.run_json("tokenize", "-m", model, "--no-special", stdin=stdin),
                    {"tokens": longest["ids"]})
                back = self.run_kvick("tokenize", "-m", model, "--decode", stdin=plain.stdout)
                self.assertEqual(back.stdout, stdin)


if __name__ == "__main__":
    kvick_cli.main()
