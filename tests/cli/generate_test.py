"""kvick generate: its JSON, its prompts, its sampling, its context."""

import json
import resource
import unittest

import kvick_cli
from kvick_cli import QUICK, CliTest, comma, data, inspect, stories, stories_folder

_PROMPT = "Once upon a time"


class GenerateTest(CliTest):
    def generate(self, *options, **popen):
        return self.run_json("generate", "-m", stories(), *options, **popen)

    def text(self, *options, **popen):
        return self.run_kvick("generate", "-m", stories(), *options, **popen).stdout.decode()

    def test_json_has_the_promised_keys(self):
        result = self.generate("-p", _PROMPT, "-n", 8)
        self.assertLessEqual({"prompt_tokens", "tokens", "text", "finish_reason", "cache",
                              "timings", "numerics", "isa"}, result.keys())
        self.assertEqual(len(result["tokens"]), 8)
        self.assertEqual(self.text("-p", _PROMPT, "-n", 8), _PROMPT + result["text"] + "\n")
        self.assertEqual(result["finish_reason"], "length")
        self.assertIn(result["isa"], kvick_cli.isas())
        self.assertTrue(all(value >= 0 for value in result["timings"].values()))

    def test_json_accounts_for_the_cache(self):
        model = inspect(stories())["model"]
        numbers = 2 * model["layers"] * model["kv_heads"] * model["head_dim"]
        for dtype, number_bytes in [("bf16", 2), ("f16", 2), ("f32", 4)]:
            for block_tokens in (16, 64):
                with self.subTest(dtype=dtype, block_tokens=block_tokens):
                    result = self.generate("-p", _PROMPT, "-n", 30, "-ctk", dtype,
                                           "--block-tokens", block_tokens)
                    cache = result["cache"]
                    # The last new token is never taken in.
                    used_tokens = len(result["prompt_tokens"]) + 30 - 1
                    num_blocks = -(-used_tokens // block_tokens)
                    self.assertEqual(cache, {
                        "dtype": dtype, "block_tokens": block_tokens,
                        "bytes_per_token": numbers * number_bytes,
                        "reserved_bytes": num_blocks * block_tokens * numbers * number_bytes,
                        "used_bytes": used_tokens * numbers * number_bytes})

    def test_the_automatic_cache_type_is_that_of_the_weights(self):
        for name, dtype in [("tiny-words-hf", "f32"), ("tiny-f16-tied", "f16"),
                            ("tiny-bf16-sharded", "bf16")]:
            for options in [(), ("-ctk", "auto")]:
                result = self.run_json("generate", "-m", data("models", name), "--tokens", "1",
                                       "-n", 1, "-c", 16, *options)
                self.assertEqual(result["cache"]["dtype"], dtype)

    def test_a_contiguous_cache_is_one_block(self):
        cache = self.generate("-p", _PROMPT, "-n", 1, "-c", 100, "--contiguous")["cache"]
        self.assertEqual(cache["block_tokens"], 100)
        self.assertEqual(cache["reserved_bytes"], 100 * cache["bytes_per_token"])

    def test_without_a_tokenizer_text_is_null(self):
        folder = stories_folder()
        result = self.run_json("generate", "-m", folder, "--tokens", "1,403", "-n", 3)
        self.assertIsNone(result["text"])
        plain = self.run_kvick("generate", "-m", folder, "--tokens", "1,403", "-n", 3)
        self.assertEqual(plain.stdout.decode().split(), [str(t) for t in result["tokens"]])

    def test_several_prompts_come_out_in_their_order(self):
        prompts = [_PROMPT, "The dog", "One day"]
        given = [x for prompt in prompts for x in ("-p", prompt)]
        results = self.generate(*given, "-n", 9)["results"]
        alone = [self.generate("-p", prompt, "-n", 9) for prompt in prompts]
        self.assertEqual([r["text"] for r in results], [r["text"] for r in alone])
        texts = [prompt + r["text"] + "\n" for prompt, r in zip(prompts, alone)]
        self.assertEqual(self.text(*given, "-n", 9), "\n".join(texts))

    def test_prompts_from_a_file_and_from_stdin(self):
        path = self.folder / "prompt.txt"
        path.write_text(_PROMPT)
        wanted = self.text("-p", _PROMPT, "-n", 9)
        self.assertEqual(self.text("-f", path, "-n", 9), wanted)
        for name in ("-", "/dev/stdin"):
            self.assertEqual(self.text("-f", name, "-n", 9, stdin=_PROMPT.encode()), wanted)

    def test_a_prompt_file_from_windows(self):
        path = self.folder / "prompt.txt"
        for text, wanted in [(b"\xef\xbb\xbfOnce upon", b"Once upon"), (b"Once\r\n", b"Once"),
                             (b"a\r\nb\r\n", b"a\nb"), (b"a\r\n\r\n", b"a\n"), (b"a\rb", b"a\rb"),
                             (b"\r\n", b""), (b"\xef\xbb\xbf", b"")]:
            with self.subTest(text=text):
                path.write_bytes(text)
                self.assertEqual(self.generate("-f", path, "-n", 0)["prompt_tokens"],
                                 self.generate("-p", wanted.decode(), "-n", 0)["prompt_tokens"])
        path.write_bytes("Once".encode("utf-16"))
        self.assertIn("expected UTF-8, got UTF-16",
                      self.run_failing("generate", "-m", stories(), "-f", path))

    def test_token_ids_from_a_file(self):
        path = self.folder / "ids.txt"
        wanted = self.generate("--tokens", "1,403,407", "-n", 0)["prompt_tokens"]
        self.assertEqual(wanted, [1, 403, 407])
        for text in ("1,403,407", "1 403 407\n", "1,\n403,\n407\n", "\ufeff1\t403\r\n407\r\n",
                     "[1, 403, 407]\n", " 1 , 403 ,407 "):
            with self.subTest(text=text):
                path.write_text(text, encoding="utf-8", newline="")
                self.assertEqual(self.generate("--tokens", f"@{path}", "-n", 0)["prompt_tokens"],
                                 wanted)
        self.assertEqual(self.generate("--tokens", "[1,403,407]", "-n", 0)["prompt_tokens"], wanted)
        self.assertEqual(self.generate("--tokens", "@-", "-n", 0, stdin=b"1 403 407")
                         ["prompt_tokens"], wanted)
        path.write_text("1 2 three")
        self.assertRegex(self.run_failing("generate", "-m", stories(), "--tokens", f"@{path}"),
                         'ids.txt: expected token ids.*"three"')
        self.assertIn("no/such", self.run_failing("generate", "-m", stories(), "--tokens",
                                                  "@no/such/file"))

    def test_no_cache_gives_the_same_text_and_no_account(self):
        cached = self.generate("-p", _PROMPT, "-n", 20)
        recomputed = self.generate("-p", _PROMPT, "-n", 20, "--no-cache")
        self.assertEqual(recomputed["tokens"], cached["tokens"])
        self.assertIsNone(recomputed["cache"])

    def test_no_new_tokens(self):
        result = self.generate("-p", _PROMPT, "-n", 0)
        self.assertEqual((result["tokens"], result["text"]), ([], ""))

    def test_the_seed_decides_the_text(self):
        def drawn(seed):
            return self.generate("-p", _PROMPT, "-n", 40, "--temp", 1.2, "--seed", seed)["tokens"]
        self.assertEqual(drawn(5), drawn(5))
        self.assertNotEqual(drawn(5), drawn(6))

    def test_narrow_sampling_is_greedy(self):
        greedy = self.generate("-p", _PROMPT, "-n", 30)["tokens"]
        for narrow in [("--top-k", 1), ("--top-p", 1e-6), ("--min-p", 1)]:
            with self.subTest(narrow=narrow):
                tokens = self.generate("-p", _PROMPT, "-n", 30, "--temp", 1, *narrow)["tokens"]
                self.assertEqual(tokens, greedy)

    def test_the_end_token_stops_the_text_unless_ignored(self):
        """The model never draws its end token: another one, which it draws, is made that."""
        tokens = self.generate("-p", _PROMPT, "-n", 30)["tokens"]
        end = tokens[20]
        key = b"tokenizer.ggml.eos_token_id"
        before, after = stories().read_bytes().split(key)
        model = self.folder / "ends.gguf"
        model.write_bytes(before + key + after[:4] + end.to_bytes(4, "little") + after[8:])

        self.assertIn(end, inspect(model)["tokenizer"]["eos_ids"])
        stopped = self.run_json("generate", "-m", model, "-p", _PROMPT, "-n", 30)
        self.assertEqual(stopped["finish_reason"], "stop")
        self.assertEqual(stopped["tokens"], tokens[:tokens.index(end)])
        ignored = self.run_json("generate", "-m", model, "-p", _PROMPT, "-n", 30, "--ignore-eos")
        self.assertEqual(ignored["finish_reason"], "length")
        self.assertEqual(ignored["tokens"], tokens)

    def test_a_folder_may_name_several_end_tokens(self):
        folder = stories_folder()
        options = ("--tokens", "1,403,407", "-n", 30)
        tokens = self.run_json("generate", "-m", folder, *options)["tokens"]
        config = json.loads((folder / "config.json").read_text())
        (self.folder / "model.safetensors").symlink_to(folder / "model.safetensors")
        for ends in (tokens[9], [2, tokens[9], tokens[15]]):
            with self.subTest(ends=ends):
                config["eos_token_id"] = ends
                (self.folder / "config.json").write_text(json.dumps(config))
                stopped = self.run_json("generate", "-m", self.folder, *options)
                self.assertEqual(stopped["finish_reason"], "stop")
                first = next(i for i, token in enumerate(tokens)
                             if token == ends or ends != tokens[9] and token in ends)
                self.assertEqual(stopped["tokens"], tokens[:first])


class ContextTest(CliTest):
    def test_a_full_context_is_said(self):
        done = self.run_kvick("generate", "-m", stories(), "-p", _PROMPT, "-c", 8, "-n", 20)
        self.assertRegex(self.sentence(done.stderr), "context of 8 tokens is full")
        result = self.run_json("generate", "-m", stories(), "-p", _PROMPT, "-c", 8, "-n", 20)
        self.assertEqual(result["finish_reason"], "length")
        self.assertEqual(result["context_tokens"], 8)
        # Eight are taken in; what they give is one more.
        self.assertEqual(len(result["prompt_tokens"]) + len(result["tokens"]), 9)

    def test_nothing_is_said_where_the_context_is_as_long_as_the_text(self):
        done = self.run_kvick("generate", "-m", stories(), "-p", _PROMPT, "-c", 8, "-n", 4)
        self.assertEqual(done.stderr, b"")

    def test_the_default_context_is_the_models(self):
        tokens = comma([1] * 500)
        done = self.run_kvick("generate", "-m", stories(), "--tokens", tokens, "-n", 40,
                              "--ignore-eos")
        self.assertRegex(self.sentence(done.stderr), "context of 512 tokens is full")

    def test_a_context_full_of_prompt_still_gives_a_token(self):
        result = self.run_json("generate", "-m", stories(), "-p", _PROMPT, "-c", 5, "-n", 9)
        self.assertEqual(len(result["tokens"]), 1)

    @unittest.skipIf(QUICK, "sanitizers need the address space")
    def test_a_context_cut_for_want_of_memory_is_said(self):
        model = data("models", "tiny-f32-hd128")
        whole = inspect(model)["model"]["context_tokens"]
        limit_bytes = inspect(model)["cache"]["f32"]["bytes_per_context"] * 3 // 4

        def limit_memory():
            resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
        done = self.run_kvick("generate", "-m", model, "--tokens", "1", "-n", 2, "-t", 1,
                              preexec_fn=limit_memory)
        self.assertRegex(self.sentence(done.stderr), rf"context is \d+ of the model's {whole}.*-c")
        sentence = self.run_failing("generate", "-m", model, "--tokens", "1", "-n", 2, "-c", whole,
                                    "-t", 1, preexec_fn=limit_memory)
        self.assertRegex(sentence, r"room for \d+ blocks")


class DemoModelTest(CliTest):
    def test_the_model_in_the_box_speaks(self):
        result = self.run_json("generate", "-p", "ROMEO:", "-n", "60")
        self.assertEqual(result["prompt_tokens"][1:], list(b"ROMEO:"))
        self.assertEqual(len(result["tokens"]), 60)
        words = result["text"].split()
        self.assertGreater(sum(word.lower().strip(",.:;") in _COMMON for word in words), 3, words)


_COMMON = {"the", "and", "of", "to", "i", "is", "my", "that", "in", "you", "thou", "not", "a",
           "be", "it", "with", "your", "have", "this", "his", "me", "for", "what", "he"}


if __name__ == "__main__":
    kvick_cli.main()
