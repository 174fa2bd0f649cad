"""Right and wrong use: help, versions, exit codes, sentences."""

import kvick_cli
from kvick_cli import CliTest, shared, stories, stories_folder

_VERBS = ["generate", "batch", "logits", "tokenize", "inspect"]


class HelpTest(CliTest):
    def test_help_of_each_verb_shows_an_example_of_it(self):
        for verb in _VERBS:
            with self.subTest(verb=verb):
                text = self.run_kvick(verb, "--help").stdout.decode()
                self.assertRegex(text, rf"Example: .*kvick {verb} ")
                self.assertIn("--json" if verb != "batch" else ".jsonl", text)

    def test_help_names_the_verbs(self):
        text = self.run_kvick("--help").stdout.decode()
        for verb in _VERBS:
            self.assertRegex(text, rf"(?m)^  {verb} ")

    def test_version_names_the_commit_and_the_implementations(self):
        text = self.run_kvick("--version").stdout.decode()
        self.assertRegex(text, r"\Akvick \d+\.\d+\.\d+ \([^)]+\)\n")
        self.assertRegex(text, r"(?m)^ +\*? +scalar ")
        self.assertEqual(text.count("\n  * "), 2, "one is marked, and the mark is explained")


class WrongUseTest(CliTest):
    def check_wrong_use(self, *args, stderr):
        done = self.run_kvick(*args, exit_code=2)
        self.assertEqual(done.stdout, b"")
        self.assertIn(stderr, done.stderr.decode())

    def test_exits_with_2_and_names_what_is_wrong(self):
        for args, stderr in [
                ((), "required"),
                (("translate",), "no verb is called translate"),
                (("generate", "-m", "x", "-p", "a", "-c", 10**15), str(10**15)),
                (("generate", "-m", "x", "-p", "a", "--block-tokens", 10**15), str(10**15)),
                (("generate", "-m", "x", "-p", "a", "--chunk", 10**15), str(10**15)),
                (("generate", "-m", "x", "-p", "a", "--seed", "-1"), "--seed"),
                (("generate",), "--prompt"),
                (("generate", "-m", "x"), "--tokens"),
                (("generate", "-m", "x", "-p", "a", "--tokens", "1"), "--tokens"),
                (("generate", "-m", "x", "-p", "a", "more"), "more"),
                (("generate", "-m", "x", "-p", "a", "--frobnicate"), "--frobnicate"),
                (("generate", "-m", "x", "-p", "a", "-t", "0"), "--threads"),
                (("generate", "-m", "x", "-p", "a", "-t", "two"), "--threads"),
                (("generate", "-m", "x", "-p", "a", "-ctk", "q4_0"), "q4_0"),
                (("generate", "-m", "x", "-p", "a", "--block-tokens", "0"), "--block-tokens"),
                (("generate", "-m", "x", "-p", "a", "--block-tokens", "16", "--contiguous"),
                 "--contiguous"),
                (("logits", "-m", "x", "--tokens", "1"), "--output"),
                (("logits", "-m", "x", "-o", "y"), "--tokens"),
                (("tokenize", "--jsonl"), "--model"),
                (("batch", "-m", "x", "-i", "y"), "--output"),
                (("batch", "-m", "x", "-o", "y"), "--input"),
                (("batch", "-i", "x", "-o", "y", "--cache-memory", "0"), "--cache-memory"),
                (("batch", "-i", "x", "-o", "y", "--cache-memory", "8 bits"), "--cache-memory"),
                (("batch", "-i", "x", "-o", "y", "--cache-memory", "9EiB"), "--cache-memory"),
                (("batch", "-i", "x", "-o", "y", "--max-sequences", "0"), "--max-sequences"),
                (("batch", "-i", "x", "-o", "y", "--no-cache"), "--no-cache"),
                (("inspect",), "path")]:
            with self.subTest(args=args):
                self.check_wrong_use(*args, stderr=stderr)


class FailureTest(CliTest):
    """What cannot be done: exit code 1, one sentence, and nothing on stdout."""

    def check(self, args, wanted):
        with self.subTest(args=args):
            self.assertRegex(self.run_failing(*args), wanted)

    def test_a_model_that_is_not_there(self):
        for verb in [("generate", "-p", "a", "-m"), ("logits", "--tokens", "1", "-o", "y", "-m"),
                     ("tokenize", "-m"), ("inspect",)]:
            self.check((*verb, "no/such/model"), "no/such/model")

    def test_a_file_that_is_no_model(self):
        path = self.folder / "text.gguf"
        path.write_text("Once upon a time")
        self.check(("inspect", path), "text.gguf")
        self.check(("generate", "-m", path, "-p", "a"), "text.gguf")

    def test_a_folder_that_is_no_model(self):
        self.check(("generate", "-m", self.folder, "-p", "a"), "config.json")

    def test_an_unknown_or_missing_implementation(self):
        self.check(("generate", "-m", stories(), "-p", "a", "--isa", "mmx"), '"mmx".*scalar')
        absent = sorted({"amx", "avx512", "avx2"} - set(kvick_cli.isas()))
        for isa in absent:
            self.check(("generate", "-m", stories(), "-p", "a", "--isa", isa), isa)

    def test_tokens_that_cannot_be(self):
        for tokens, wanted in [("1,x", "1,x"), ("", '""'), ("1,,2", "1,,2"), ("1,", "1,"),
                               ("1,512", "512"), ("1,-1", "-1"), ("99999999999", "99999999999")]:
            self.check(("generate", "-m", stories(), "--tokens", tokens), wanted)
            self.check(("logits", "-m", stories(), "--tokens", tokens, "-o",
                        self.folder / "l.npy"), wanted)

    def test_sampling_options_that_cannot_be(self):
        for options, wanted in [(("--temp", -1), "temperature is -1"),
                                (("--temp", "nan"), "temperature is nan"),
                                (("--temp", 1, "--top-p", 0), "top_p is 0"),
                                (("--temp", 1, "--top-p", 1.5), "top_p is 1.5"),
                                (("--temp", 1, "--min-p", 2), "min_p is 2")]:
            self.check(("generate", "-m", stories(), "-p", "a", *options), wanted)

    def test_a_prompt_longer_than_the_context(self):
        self.check(("generate", "-m", stories(), "-p", "Once upon a time", "-c", 4), r"5.*4")
        self.check(("logits", "-m", stories(), "--tokens", "1,2,3", "-c", 2, "-o",
                    self.folder / "l.npy"), r"3.*2")

    def test_text_for_a_model_without_a_tokenizer(self):
        folder = stories_folder()
        self.check(("generate", "-m", folder, "-p", "a"), "tokenizer")

    def test_a_prompt_file_that_cannot_be_read(self):
        self.check(("generate", "-m", stories(), "-f", "no/such/file"), "no/such/file")
        self.check(("generate", "-m", stories(), "-f", self.folder), str(self.folder))

    def test_a_vocabulary_without_weights(self):
        self.check(("generate", "-m", shared("tokenizers", "llama-bpe.gguf"), "-p", "a"),
                   "token_embd.weight")

    def test_an_output_that_cannot_be_written(self):
        self.check(("logits", "-m", stories(), "--tokens", "1", "-o", "no/such/folder/l.npy"),
                   "no/such/folder/l.npy")

    def test_a_line_that_is_no_json(self):
        done = self.run_kvick("tokenize", "-m", stories(), "--jsonl", exit_code=1,
                              stdin=b'{"text": "a"}\n{"tex\n')
        self.assertRegex(self.sentence(done.stderr), "line 2")
        self.assertEqual(done.stdout.count(b"\n"), 1, "the first line is answered")


if __name__ == "__main__":
    kvick_cli.main()
