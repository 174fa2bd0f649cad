"""Right and wrong use: help, versions, exit codes, sentences."""

import re

import kvick_cli
from kvick_cli import CliTest, shared, stories, stories_folder

_VERBS = ["generate", "batch", "prove", "bench", "plan", "logits", "tokenize", "inspect"]
_BENCH_VERBS = ["limits", "attention", "linear", "model", "append", "serving"]
_ALL_VERBS = [*((verb,) for verb in _VERBS), *(("bench", verb) for verb in _BENCH_VERBS)]


class HelpTest(CliTest):
    def help_of(self, *verb):
        return self.run_kvick(*verb, "--help").stdout.decode()

    def test_help_shows_an_example_before_the_options(self):
        for verb in _ALL_VERBS:
            with self.subTest(verb=verb):
                text = self.help_of(*verb)
                self.assertRegex(text, rf"\A[A-Z][^\n]+\.\n\nExample: kvick {' '.join(verb)} ")
                self.assertLess(text.index("Example: "), text.index("Usage: "))

    def test_help_names_what_may_stand_without_an_option(self):
        self.assertIn("Usage: kvick generate [options] [MODEL] [PROMPT]\n", self.help_of("generate"))
        self.assertIn("Usage: kvick tokenize [options] [MODEL] [PROMPT]\n", self.help_of("tokenize"))
        self.assertIn("Usage: kvick inspect [options] MODEL\n", self.help_of("inspect"))

    def test_help_says_ranges_and_defaults_as_people_write_them(self):
        text = self.help_of("generate")
        for entry in [r"-t, --threads N .*1 to 1024", r"-c, --ctx-size N .*at least 1",
                      r"--top-p X .*0 to 1; default 1", r"--cache-type-k TYPE .*auto, bf16, f16 or f32",
                      r"--block-tokens N .*default 16; not with --contiguous"]:
            self.assertRegex(re.sub(r"\s+", " ", text), entry)

    def test_help_has_no_words_of_the_parser_and_fits_a_terminal(self):
        for verb in [(), *_ALL_VERBS]:
            with self.subTest(verb=verb):
                text = self.help_of(*verb)
                self.assertNotRegex(text, r"INT|TEXT:|FLOAT|UINT|REQUIRED|Option Group|2147483648")
                self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_help_names_the_words_that_a_verb_takes(self):
        for verb in ("generate", "tokenize"):
            self.assertIn(f"\nUsage: kvick {verb} [options] [MODEL] [PROMPT]\n", self.help_of(verb))
        self.assertIn("\nUsage: kvick inspect [options] MODEL\n", self.help_of("inspect"))

    def test_only_verbs_that_take_a_prompt_speak_of_one(self):
        for verb, speaks in [("generate", True), ("tokenize", True), ("inspect", False),
                             ("logits", False)]:
            done = self.run_kvick(verb, "a", "b", "c", exit_code=2)
            self.assertEqual(b"put a prompt into quotes" in done.stderr, speaks, done.stderr)

    def test_help_names_the_verbs_and_the_exit_codes(self):
        text = self.help_of()
        for verb in _VERBS:
            self.assertRegex(text, rf"(?m)^  {verb} ")
        for code in ("0", "1", "2", "3", "128"):
            self.assertRegex(text, rf"(?m)^  {code} ")

    def test_help_as_a_word(self):
        self.assertEqual(self.run_kvick("help", "generate").stdout.decode(),
                         self.help_of("generate"))
        self.assertEqual(self.run_kvick("help").stdout.decode(), self.help_of())

    def test_a_missing_verb_shows_the_verbs(self):
        for args, verbs in [((), _VERBS), (("bench",), _BENCH_VERBS)]:
            done = self.run_kvick(*args, exit_code=2)
            self.assertEqual(done.stdout, b"")
            for verb in verbs:
                self.assertRegex(done.stderr.decode(), rf"(?m)^  {verb} ")

    def test_version_names_the_commit_and_the_implementations(self):
        text = self.run_kvick("--version").stdout.decode()
        self.assertRegex(text, r"\Akvick \d+\.\d+\.\d+ \([^)]+\)\n")
        self.assertRegex(text, r"(?m)^numerics: (canonical|tiles)-\d+$")
        self.assertRegex(text, r"(?m)^ +\*? +scalar +canonical  ")
        self.assertEqual(text.count("\n  * "), 2, "one is marked, and the mark is explained")


class WrongUseTest(CliTest):
    def check_wrong_use(self, *args, stderr):
        done = self.run_kvick(*args, exit_code=2)
        self.assertEqual(done.stdout, b"")
        self.assertRegex(self.sentence(done.stderr), stderr)

    def test_exits_with_2_and_names_what_is_wrong(self):
        generate = ("generate", "-m", "x", "-p", "a")
        batch = ("batch", "-i", "x", "-o", "y")
        for args, stderr in [
                (("translate",), "expected a verb, got translate"),
                (("Once upon a time",), "expected a verb.*kvick generate"),
                (("model.gguf",), "expected a verb.*kvick generate"),
                (("-m", "x", "-p", "a"), "expected a verb, got -m.*kvick generate"),
                (("bench", "everything"), "expected a verb, got everything.*kvick bench --help"),
                ((*generate, "-c", 10**15), "--ctx-size: expected at most 2147483648, got 10+"),
                ((*generate, "-c", 0), "--ctx-size: expected at least 1, got 0"),
                ((*generate, "-c", "1e3"), "--ctx-size: expected at least 1, got 1e3"),
                ((*generate, "-c", ""), "--ctx-size: expected at least 1, got nothing"),
                ((*generate, "-c", 10**30), "--ctx-size: expected"),
                ((*generate, "--block-tokens", 10**15), "--block-tokens"),
                ((*generate, "--chunk", 10**15), "--chunk"),
                ((*generate, "--seed", "-1"), "--seed: expected at least 0, got -1"),
                ((*generate, "--temp", "-1"), "--temp: expected a number, at least 0, got -1"),
                ((*generate, "--temp", "nan"), "--temp: expected a number, at least 0, got nan"),
                ((*generate, "--temp", "inf"), "--temp"),
                ((*generate, "--temp", "hot"), "--temp"),
                ((*generate, "--top-p", "1.5"), "--top-p: expected a number, 0 to 1, got 1.5"),
                ((*generate, "--min-p", "2"), "--min-p"),
                ((*generate, "--top-k", "-2"), "--top-k: expected at least -1, got -2"),
                ((*generate, "--repeat-penalty", "0"), "--repeat-penalty"),
                ((*generate, "--isa", "mmx"), "--isa: expected auto, .*scalar.*, got mmx"),
                ((*generate, "--numerics", "exact"),
                 "--numerics: expected auto, canonical or tiles, got exact"),
                ((*generate, "--precision", "low"), "--precision: expected standard or high, got low"),
                (("generate",), "expected a prompt.*--prompt"),
                (("generate", "-m", "x"), "expected a prompt.*--tokens"),
                ((*generate, "--tokens", "1"), "expected one kind of prompt"),
                ((*generate, "more"), "expected one kind of prompt"),
                ((*generate, "--frobnicate"), "unexpected argument --frobnicate"),
                ((*generate, "-t", "0"), "--threads: expected 1 to 1024, got 0"),
                ((*generate, "-t", "two"), "--threads: expected 1 to 1024, got two"),
                ((*generate, "-t"), "--threads"),
                ((*generate, "-ctk", "q4_0"), "--cache-type-k: expected auto, bf16.*, got q4_0"),
                ((*generate, "--block-tokens", "16", "--contiguous"), "--contiguous"),
                (("generate", "Once", "upon", "a", "time"), "unexpected argument a; put a prompt into quotes"),
                (("generate", "Once", "upon"), "expected one prompt.*put a prompt into quotes"),
                (("generate", "-m", "", "-p", "a"), "--model: expected a path, got nothing"),
                (("logits", "--tokens", "1"), "--output is required"),
                (("logits", "-o", "y"), "--tokens is required"),
                (("logits", "--tokens", "1", "-o", "-", "--json"), "--json: expected -o FILE"),
                (("tokenize", "a", "b"), "put a prompt into quotes"),
                (("tokenize", "--jsonl", "a"), "expected one text"),
                (("batch", "-o", "y"), "--input is required"),
                (("batch", "-i", "y"), "--output is required"),
                (("batch", "-i", "y", "-o", "-", "--resume"), "--resume: expected -o FILE"),
                ((*batch, "--resume", "--force"), "cannot be combined"),
                ((*batch, "--cache-memory", "0"), "--cache-memory: expected at least 1 byte, got 0"),
                ((*batch, "--cache-memory", "8 bits"), "--cache-memory: expected a size such as"),
                ((*batch, "--cache-memory", "-1GiB"), "--cache-memory: expected a size such as"),
                ((*batch, "--cache-memory", "9EiB"), "--cache-memory: expected at most 1024TiB"),
                ((*batch, "--max-sequences", "0"), "--max-sequences: expected 1 to 65536, got 0"),
                ((*batch, "--no-cache"), "unexpected argument --no-cache"),
                (("prove", "-n", "1"), "--predict: expected at least 2, got 1"),
                (("plan",), "--model is required"),
                (("inspect",), "--model is required")]:
            with self.subTest(args=args):
                self.check_wrong_use(*args, stderr=stderr)

    def test_token_ids_that_are_none(self):
        for tokens, got in [("1,x", '"x"'), ("", '""'), ("1,,2", '"1,,2"'), ("1,", '"1,"'),
                            ("1.5", '"1.5"'), ("99999999999", '"99999999999"'), ("[1,", r'"\[1,"'),
                            ('[1,"2"]', '"2"'), ("[1.5]", "1.5"), (f"[{1 << 64}]", "1.8446")]:
            self.check_wrong_use("generate", "--tokens", tokens, stderr=rf"expected token ids.*{got}")
            self.check_wrong_use("logits", "--tokens", tokens, "-o", self.folder / "l.npy",
                                 stderr=rf"--tokens: expected token ids.*{got}")


class WordsTest(CliTest):
    """Paths and prompts without an option."""

    def text(self, *args):
        return self.run_kvick("generate", *args, "-n", 5).stdout.decode()

    def test_a_prompt_and_a_model(self):
        with_options = self.text("-m", stories(), "-p", "Once upon a time")
        self.assertEqual(self.text(stories(), "Once upon a time"), with_options)
        self.assertEqual(self.text("Once upon a time", stories()), with_options)
        self.assertEqual(self.text(stories(), "-p", "Once upon a time"), with_options)
        self.assertEqual(self.text("-m", stories(), "Once upon a time"), with_options)
        self.assertEqual(self.text("ROMEO:"), self.text("-p", "ROMEO:"))

    def test_a_model_that_is_not_there(self):
        sentence = self.run_failing("generate", "no-such-model.gguf", "-p", "x")
        self.assertIn("no-such-model.gguf", sentence)

    def test_a_file_where_a_prompt_is_expected(self):
        path = self.folder / "prompt.txt"
        path.write_text("Once")
        done = self.run_kvick("generate", stories(), path, exit_code=2)
        self.assertRegex(self.sentence(done.stderr), "expected a prompt, got a file; -f .*prompt.txt")

    def test_texts_that_look_like_lists(self):
        """The parser of options has its own lists."""
        for text in ("{}", "[a,b]", "[]", "%%", "-x", "--", "", "a,b", "'", '"'):
            with self.subTest(text=text):
                self.assertEqual(self.text("-m", stories(), "-p", text)[:len(text)], text)

    def test_a_model_for_every_verb(self):
        one = self.folder / "one.npy"
        self.run_kvick("logits", stories(), "--tokens", "1,403", "-o", one)
        self.assertEqual(one.read_bytes(), self.logits(stories(), [1, 403]))
        self.assertEqual(self.run_kvick("inspect", "-m", stories()).stdout,
                         self.run_kvick("inspect", stories()).stdout)
        self.assertEqual(self.run_kvick("plan", "-m", stories(), "--memory", "1GiB").stdout,
                         self.run_kvick("plan", stories(), "--memory", "1GiB").stdout)
        for args in [("batch", "no.gguf", "-i", "-", "-o", "-"), ("prove", "no.gguf"),
                     ("bench", "model", "no.gguf"), ("bench", "serving", "no.gguf")]:
            self.assertIn("no.gguf", self.run_failing(*args))


class FailureTest(CliTest):
    """What cannot be done: exit code 1, one sentence, and nothing on stdout."""

    def check(self, args, wanted):
        with self.subTest(args=args):
            self.assertRegex(self.run_failing(*args), wanted)

    def test_a_model_that_is_not_there(self):
        for verb in [("generate", "-p", "a", "-m"), ("logits", "--tokens", "1", "-o", "y", "-m"),
                     ("tokenize", "-m"), ("inspect",), ("plan",),
                     ("prove", "-m")]:
            self.check((*verb, "no/such/model"), "no/such/model")

    def test_a_file_that_is_no_model(self):
        path = self.folder / "text.gguf"
        path.write_text("Once upon a time")
        self.check(("inspect", path), "text.gguf")
        self.check(("generate", "-m", path, "-p", "a"), "text.gguf")

    def test_a_folder_that_is_no_model(self):
        self.check(("generate", "-m", self.folder, "-p", "a"), "config.json")

    def test_an_implementation_of_other_numerics(self):
        for verb in [("generate", "-p", "a"), ("prove",), ("bench", "limits")]:
            self.check((*verb, "--numerics", "tiles", "--isa", "scalar"),
                       "^numerics of isa scalar: expected canonical, got tiles$")

    def test_a_missing_implementation(self):
        for isa in sorted({"amx", "avx512", "avx2"} - set(kvick_cli.isas())):
            self.check(("generate", "-m", stories(), "-p", "a", "--isa", isa), isa)

    def test_tokens_outside_the_vocabulary(self):
        for tokens, wanted in [("1,512", "512"), ("1,-1", "-1")]:
            self.check(("generate", "-m", stories(), "--tokens", tokens), wanted)
            self.check(("logits", "-m", stories(), "--tokens", tokens, "-o",
                        self.folder / "l.npy"), wanted)

    def test_a_prompt_longer_than_the_context(self):
        self.check(("generate", "-m", stories(), "-p", "Once upon a time", "-c", 4),
                   "expected 1 to 4 tokens.*got 5")
        self.check(("logits", "-m", stories(), "--tokens", "1,2,3", "-c", 2, "-o",
                    self.folder / "l.npy"), "expected 1 to 2 tokens.*got 3")

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
