"""Token ids against those of other programs, and back to the text."""

import json

import kvick_cli
from kvick_cli import CliTest, comma, shared, stories


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


class UseTest(CliTest):
    def test_the_text_comes_from_the_command_line_a_file_or_stdin(self):
        path = self.folder / "text.txt"
        path.write_bytes(b"\xef\xbb\xbfOnce upon\r\n")
        wanted = self.run_kvick("tokenize", "-m", stories(), stdin=b"Once upon").stdout
        for args in [(stories(), "Once upon"), ("-m", stories(), "-p", "Once upon"),
                     (stories(), "-f", path), ("Once upon", "-m", stories())]:
            with self.subTest(args=args):
                self.assertEqual(self.run_kvick("tokenize", *args).stdout, wanted)

    def test_the_demo_model_is_the_default(self):
        ids = self.run_json("tokenize", "ROMEO:")["tokens"]
        self.assertEqual(ids[1:], list(b"ROMEO:"))
        self.assertEqual(self.run_kvick("tokenize", "--decode", comma(ids)).stdout, b"ROMEO:")

    def test_ids_out_of_range_are_an_error(self):
        size = kvick_cli.inspect(stories())["tokenizer"]["tokens"]
        for bad in (-1, size, 2**31 - 1):
            wanted = f"token id: expected 0 to {size - 1}, got {bad}"
            self.assertIn(wanted, self.run_failing("tokenize", "-m", stories(), "--decode",
                                                   stdin=f"1,{bad}\n".encode()))
            self.assertIn(f"line 1: {wanted}",
                          self.run_failing("tokenize", "-m", stories(), "--decode", "--jsonl",
                                           stdin=f"[1,{bad}]\n".encode()))

    def test_lines_from_windows(self):
        done = self.run_kvick("tokenize", "-m", stories(), "--jsonl",
                              stdin=b'\xef\xbb\xbf{"text": "a"}\r\n\r\n{"text": "a"}\r\n')
        first, second = done.stdout.splitlines()
        self.assertEqual(first, second)

    def test_control_tokens_can_be_text(self):
        def ids(*options):
            return self.run_json("tokenize", "-m", stories(), "-p", "<s>a", *options)["tokens"]
        self.assertEqual(ids()[:2], [1, 1])
        self.assertEqual(ids("--no-parse-special")[0], 1)
        self.assertEqual(ids("--no-parse-special")[1:], ids("--no-special"))
        self.assertNotIn(1, ids("--no-special"))


if __name__ == "__main__":
    kvick_cli.main()
