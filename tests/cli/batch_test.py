"""kvick batch: the texts of `kvick generate`, whatever the cache, the order, or a crash between."""

import json
import os
import random
import re
import shlex
import signal
import subprocess
import time
import unittest

import kvick_cli
from kvick_cli import QUICK, SEED, CliTest, binary, comma, data, random_tokens, stories, stories_folder

_PROMPTS = ["Once upon a time", "The dog", "One day, a girl", "", "Lily and Tom went to the park. ",
            "Once upon a time there was a big red ball. ", "He said: \"", "\u00e9\u4e2d \U0001f600"]
_BLOCK_BYTES = 16 * 1280  # of stories260K in f32
# What one text says, however it was come by.
_TEXT = ("text", "tokens", "finish_reason", "context_is_full", "prompt_tokens")


def _mixed_requests(num_requests):
    """Greedy and sampled, short and long, with a common beginning and without."""
    rng = random.Random(f"{SEED} batch")
    requests = []
    for i in range(num_requests):
        request = {"id": f"r{i}", "max_tokens": rng.choice([0, 1, 9, 40, 90, 150])}
        if i % 5 == 4:
            request["tokens"] = [1] + random_tokens(stories(), rng.choice([1, 15, 16, 17, 70]), i)
        else:
            request["prompt"] = rng.choice(_PROMPTS)
        if i % 2:
            request.update(temperature=rng.choice([0.5, 1, 1.5]), seed=rng.randrange(1000))
            request.update(rng.choice([{}, {"top_k": 20}, {"top_p": 0.9}, {"min_p": 0.05},
                                       {"repetition_penalty": 1.3}]))
        if i % 7 == 3:
            request["stop"] = rng.choice(["the", [" to", "."], ["never found"]])
        if i % 6 == 1:
            request["n"] = 3
        if i % 4 == 1:
            request["ignore_eos"] = True
        requests.append(request)
    return requests


def _as_options(request, index):
    """The same for `kvick generate`."""
    names = {"max_tokens": "-n", "temperature": "--temp", "top_k": "--top-k", "top_p": "--top-p",
             "min_p": "--min-p", "repetition_penalty": "--repeat-penalty", "prompt": "-p"}
    options = [x for key, name in names.items() if key in request for x in (name, request[key])]
    if "tokens" in request:
        options += ["--tokens", comma(request["tokens"])]
    stop = request.get("stop", [])
    for text in [stop] if isinstance(stop, str) else stop:
        options += ["--stop", text]
    if request.get("ignore_eos"):
        options.append("--ignore-eos")
    return [*options, "--seed", request.get("seed", 0) + index]


def _texts(results):
    """What they say, by id and index."""
    texts = {(r["id"], r["index"]): {key: r[key] for key in _TEXT} for r in results}
    assert len(texts) == len(results), "a result stands there twice"
    return texts


def _lines(values):
    return b"".join(v + b"\n" if isinstance(v, bytes) else json.dumps(v).encode() + b"\n"
                    for v in values)


class BatchTest(CliTest):
    def setUp(self):
        super().setUp()
        self.input = self.folder / "requests.jsonl"
        self.output = self.folder / "results.jsonl"
        self.stderr = ""

    def command(self, *options, model=None):
        files = ("-i", self.input, "-o", self.output)
        return ["batch", "-m", model or stories(), *files, "-t", 1, *options]

    def results(self):
        text = self.output.read_bytes()
        self.assertTrue(text == b"" or text.endswith(b"\n"))
        return [json.loads(line) for line in text.splitlines()]

    def batch(self, requests, *options, model=None, **run):
        """Runs them; the results as they stand in the output."""
        self.input.write_bytes(_lines(requests))
        if "--resume" not in options:
            self.output.unlink(missing_ok=True)
        done = self.run_kvick(*self.command(*options, model=model), **run)
        self.assertEqual(done.stdout, b"")
        self.stderr = done.stderr.decode()
        return self.results()

    def summary(self, what):
        return int(re.search(rf"(\d+) {what}", self.stderr)[1])

    def alone(self, request):
        """The texts of one request, one by one from `kvick generate`."""
        texts = {}
        for index in range(request.get("n", 1)):
            result = self.run_json("generate", "-m", stories(), "-t", 1,
                                   *_as_options(request, index))
            texts[request["id"], index] = {
                **{key: result[key] for key in ("text", "tokens", "finish_reason")},
                "context_is_full": False, "prompt_tokens": len(result["prompt_tokens"])}
        return texts


class TextsTest(BatchTest):
    def test_each_is_that_of_generate(self):
        requests = _mixed_requests(14 if QUICK else 49)
        wanted = {}
        for request in requests:
            wanted.update(self.alone(request))
        for options in [(), ("--contiguous", "--max-sequences", 3),
                        ("--batch-tokens", 7, "--max-sequences", 5, "--ordered")]:
            with self.subTest(options=options):
                self.assertEqual(_texts(self.batch(requests, *options)), wanted)
                self.assertEqual(self.summary("preemptions"), 0)

        # As good as no room: one text may take all of it.
        cache = ("--cache-memory", 33 * _BLOCK_BYTES, "--max-sequences", 24)
        results = self.batch(requests, *cache)
        self.assertEqual(_texts(results), wanted)
        num_preemptions = sum(r["preemptions"] for r in results)
        self.assertGreater(num_preemptions, 0 if QUICK else 5)
        self.assertEqual(self.summary("preemptions"), num_preemptions)
        self.assertGreater(sum(r["reused_tokens"] for r in results), 0)
        self.assertEqual(self.summary("requests"), len(requests))
        self.assertEqual(self.summary("new tokens"), sum(len(r["tokens"]) for r in results))

    def test_one_block_for_all(self):
        """Each takes over what the one before it has left in the block."""
        requests = [{"id": i, "prompt": _PROMPTS[i % 3], "max_tokens": 5} for i in range(9)]
        wanted = _texts(self.batch(requests))
        self.assertEqual(_texts(self.batch(requests, "--contiguous", "--cache-memory",
                                           33 * _BLOCK_BYTES)), wanted)

    def test_the_defaults_are_those_of_generate(self):
        self.assertEqual(_texts(self.batch([{"id": 7, "prompt": "The dog"}])),
                         self.alone({"id": 7, "prompt": "The dog"}))

    def test_the_model_in_the_box(self):
        self.input.write_bytes(_lines([{"prompt": "ROMEO:", "max_tokens": 40}]))
        self.run_kvick("batch", "-i", self.input, "-o", self.output)
        wanted = self.run_json("generate", "-p", "ROMEO:", "-n", 40)
        self.assertEqual(self.results()[0]["text"], wanted["text"])

    def test_text_is_null_without_a_tokenizer(self):
        folder = stories_folder()
        requests = [{"tokens": [1, 403], "max_tokens": 3}, {"prompt": "a"},
                    {"tokens": [1], "stop": "a"}]
        text, *errors = self.batch(requests, "--ordered", model=folder, exit_code=1)
        self.assertIsNone(text["text"])
        self.assertEqual(len(text["tokens"]), 3)
        for error in errors:
            self.assertRegex(error["error"]["message"], "tokenizer")

    def test_biases_forbid_and_force_tokens(self):
        free, forced, forbidden = self.batch(
            [{"prompt": "The dog", "max_tokens": 9, "logit_bias": bias}
             for bias in ({}, {"400": 1000, "3": -1.5}, None)], "--ordered")
        self.assertEqual(forced["tokens"], [400] * 9)
        self.assertEqual(forbidden["tokens"], free["tokens"])
        bias = {str(token): -1e30 for token in free["tokens"]}
        [other] = self.batch([{"prompt": "The dog", "max_tokens": 9, "logit_bias": bias}])
        self.assertFalse(set(other["tokens"]) & set(free["tokens"]))

    def test_until_the_context_is_full(self):
        [result] = self.batch([{"prompt": "The dog", "max_tokens": -1, "ignore_eos": True}],
                              "-c", 40)
        self.assertEqual(result["prompt_tokens"] + len(result["tokens"]), 41)
        self.assertTrue(result["context_is_full"])

    def test_namespaces_share_nothing(self):
        tokens = [1] + random_tokens(stories(), 96, "cache_salt")
        requests = [{"tokens": tokens, "max_tokens": 2, "cache_salt": name}
                    for name in ("a", "b", "a", "b", "c")]
        results = self.batch([*requests, {"tokens": tokens, "max_tokens": 2}], "--ordered")
        self.assertEqual([r["reused_tokens"] for r in results], [0, 0, 96, 96, 0, 0])
        self.assertEqual(len({tuple(r["tokens"]) for r in results}), 1)


class MembersTest(BatchTest):
    _BASE = {"prompt": "The dog", "max_tokens": 6, "ignore_eos": True}

    def say(self, *requests):
        return [r["tokens"] for r in self.batch(requests, "--ordered")]

    def test_members_that_are_null_say_nothing(self):
        names = ("id", "tokens", "temperature", "top_k", "seed", "stop", "logit_bias", "n",
                 "cache_salt", "parse_special", "max_completion_tokens", "namespace", "user",
                 "logprobs", "stream", "anything at all")
        wanted, *got = self.say(self._BASE, *({**self._BASE, name: None} for name in names),
                                {**self._BASE, "logit_bias": {"5": None}})
        self.assertEqual(got, [wanted] * (len(names) + 1))

    def test_top_k_of_all_and_top_p_of_none(self):
        drawn = {**self._BASE, "temperature": 1.5, "seed": 3}
        every, also, best, greedy = self.say(drawn, {**drawn, "top_k": -1}, {**drawn, "top_p": 0},
                                             self._BASE)
        self.assertEqual(also, every)
        self.assertEqual(best, greedy)

    def test_two_names_of_the_same_limit(self):
        lengths = [len(tokens) for tokens in self.say(
            {"prompt": "a", "ignore_eos": True, "max_completion_tokens": 3},
            {"prompt": "a", "ignore_eos": True, "max_tokens": 3, "max_completion_tokens": 3},
            {"prompt": "a", "ignore_eos": True, "max_tokens": None, "max_completion_tokens": 4})]
        self.assertEqual(lengths, [3, 3, 4])

    def test_ids_that_are_the_numbers_of_other_lines(self):
        results = self.batch([{"id": 2, **self._BASE}, {**self._BASE, "prompt": "One"}, self._BASE,
                              {"id": 3, **self._BASE}], "--ordered")
        self.assertEqual([(r["id"], r.get("line")) for r in results],
                         [(2, None), ("line 2", 2), (3, 3), (3, None)])
        self.assertEqual(len({json.dumps([r["id"], r.get("line")]) for r in results}), 4)

    def test_control_tokens_in_a_prompt_can_be_text(self):
        model = data("models", "tiny-words.gguf")
        prompt = "a</s>b<s>"
        counts = {}
        for parse_special in (True, False):
            options = [] if parse_special else ["--no-parse-special"]
            ids = self.run_json("tokenize", "-m", model, "-p", prompt, *options)["tokens"]
            generated = self.run_json("generate", "-m", model, "-p", prompt, "-n", 1, *options)
            self.assertEqual(generated["prompt_tokens"], ids)
            [result] = self.batch([{"prompt": prompt, "max_tokens": 1,
                                    "parse_special": parse_special}], model=model)
            self.assertEqual(result["prompt_tokens"], len(ids))
            counts[parse_special] = len(ids)
        self.assertLess(counts[True], counts[False])

    def test_files_from_windows(self):
        wanted = self.say(self._BASE, self._BASE)
        line = json.dumps(self._BASE).encode()
        self.input.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n\r\n" + line + b"\r\n")
        self.run_kvick(*self.command("--force", "--ordered"))
        self.assertEqual([r["tokens"] for r in self.results()], wanted)


class OrderTest(BatchTest):
    _REQUESTS = [{"id": "long", "prompt": "The dog", "max_tokens": 200, "ignore_eos": True},
                 {"id": 5, "prompt": "The dog", "max_tokens": 1, "n": 3},
                 {"id": "wrong"}, b"", {"prompt": "One day"}, {"prompt": "One", "max_tokens": 2}]
    # The fifth line would be called 5.
    _IN_ORDER = [("long", 0), (5, 0), (5, 1), (5, 2), ("wrong", None), ("line 5", 0), (6, 0)]

    def ids(self, *options):
        results = self.batch(self._REQUESTS, *options, exit_code=1)
        self.assertRegex(self.stderr, "1 of 5 requests failed")
        return [(r["id"], r.get("index")) for r in results]

    def test_of_the_input(self):
        self.assertEqual(self.ids("--ordered"), self._IN_ORDER)

    def test_of_completion(self):
        ids = self.ids()
        self.assertEqual(sorted(map(str, ids)), sorted(map(str, self._IN_ORDER)))
        self.assertEqual(ids[-1], ("long", 0))


class PipeTest(BatchTest):
    def test_stdin_and_stdout(self):
        requests = _mixed_requests(6)
        wanted = _texts(self.batch(requests, "--ordered"))
        done = self.run_kvick("batch", "-m", stories(), "-i", "-", "-o", "-", "--ordered",
                              stdin=_lines(requests)[:-1])  # nothing ends the last line
        self.assertEqual(_texts(list(map(json.loads, done.stdout.splitlines()))), wanted)

    def test_nothing_at_all(self):
        done = self.run_kvick("batch", "-m", stories(), "-i", "-", "-o", "-", stdin=b"\n \n")
        self.assertEqual(done.stdout, b"")
        self.assertRegex(self.sentence(done.stderr), "^0 requests")

    def test_a_request_is_answered_before_the_next_is_asked(self):
        command = [binary(), "batch", "-m", str(stories()), "-i", "-", "-o", "-"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as process:
            for i in range(3):
                process.stdin.write(_lines([{"id": i, "prompt": "The dog", "max_tokens": 3}]))
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["id"], i)
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)

    @unittest.skipIf(QUICK, "sanitizers hold what was freed")
    def test_memory_does_not_grow_with_the_input(self):
        def most_bytes(num_requests, *options):
            self.input.write_bytes(_lines(
                {"tokens": [1] * 50, "max_tokens": 1, "stop": "x" * 400}
                for _ in range(num_requests)))
            command = [binary(), *map(str, self.command("--force", *options))]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            self.assertEqual(len(self.results()), num_requests)
            return usage.ru_maxrss * 1024
        for options in [(), ("--ordered",)]:
            few, many = most_bytes(500, *options), most_bytes(9000, *options)
            self.assertLess(many - few, 6 << 20)

    def test_outputs_that_cannot_be(self):
        self.input.write_bytes(_lines([{"prompt": "The dog", "max_tokens": 1}]))
        before = self.input.read_bytes()
        for output, wanted in [(self.input, "another file than the input"), (self.folder, "cannot open"),
                               (self.folder / "no/such/file", "no/such/file"),
                               ("/dev/full", "cannot write")]:
            sentence = self.run_failing("batch", "-m", stories(), "-i", self.input, "-o", output)
            self.assertRegex(sentence, wanted)
            self.assertEqual(self.input.read_bytes(), before)

    def test_an_input_that_cannot_be_read(self):
        self.output.write_text("precious\n")
        for path in ("no/such/file", self.folder):
            sentence = self.run_failing("batch", "-m", stories(), "-i", path, "-o", self.output,
                                        "--force")
            self.assertRegex(sentence, re.escape(str(path)))
        self.assertEqual(self.output.read_text(), "precious\n")


class ResumeTest(BatchTest):
    def requests(self):
        requests = _mixed_requests(20)
        for request in requests:
            request["max_tokens"] *= 2
        return [*requests, b"{", {"id": "r3", "prompt": "again"}, {"id": "x", "max_tokens": "a"},
                {"id": "never", "tokens": [1] * 600}]

    def wanted(self, requests):
        return sorted(map(self.said, self.batch(requests, exit_code=1)))

    def said(self, result):
        return json.dumps({k: v for k, v in result.items()
                           if k not in ("timings", "reused_tokens", "preemptions")})

    def start(self, num_results, *options):
        """A run that has written so many results."""
        process = subprocess.Popen([binary(), *map(str, self.command(*options))],
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        self.wait_for(num_results)
        return process

    def wait_for(self, num_results):
        deadline = time.monotonic() + 60
        while not self.output.exists() or self.output.read_bytes().count(b"\n") < num_results:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)

    def check_resumed(self, requests, wanted, *options):
        results = self.batch(requests, "--resume", *options, exit_code=1)
        self.assertEqual(sorted(map(self.said, results)), wanted)
        self.assertRegex(self.stderr, r"4 of 24 requests failed")

    def test_after_a_kill(self):
        requests = self.requests()
        wanted = self.wanted(requests)
        for options in [("--max-sequences", 2), ("--max-sequences", 3, "--ordered")]:
            with self.subTest(options=options):
                self.output.unlink()
                process = self.start(5, *options)
                process.kill()
                process.wait()
                with self.output.open("ab") as torn:
                    torn.write(b'{"id":"r19","index":0,"text":"a')
                self.check_resumed(requests, wanted, *options)
                self.assertGreater(self.summary("of them from an earlier run"), 0)
                self.check_resumed(requests, wanted)  # there is nothing left to do
                self.assertEqual(self.summary("new tokens"), 0)

    def test_after_a_signal(self):
        requests = self.requests()
        wanted = self.wanted(requests)
        for number in (signal.SIGINT, signal.SIGTERM):
            for options in [(), ("--ordered",)]:
                with self.subTest(number=number, options=options):
                    self.output.unlink()
                    process = self.start(5, "--max-sequences", 2, *options)
                    process.send_signal(number)
                    self.assertEqual(process.wait(60), 128 + number)
                    self.assertRegex(process.stderr.read().decode(), "stopped by.*--resume")
                    there = self.results()
                    self.assertGreaterEqual(len(there), 5)
                    self.assertLess(len(there), len(wanted))
                    self.assertLessEqual(set(map(self.said, there)), set(wanted))
                    self.check_resumed(requests, wanted, *options)

    def test_a_signal_drops_nothing_that_has_ended(self):
        """Not even what was held back behind a text that goes on."""
        requests = [{"id": "long", "prompt": "x", "max_tokens": -1, "ignore_eos": True, "n": 3},
                    *({"id": i, "prompt": f"y{i}", "max_tokens": 1} for i in range(20))]
        command = [binary(), "batch", "-m", str(stories()), "-i", "-", "-o", str(self.output),
                   "--force", "--ordered", "-c", "10000", "--cache-memory", "100MiB"]
        for seconds in (2, 10, 40):  # what is held back cannot be seen: a busy machine takes longer
            with subprocess.Popen(command, stdin=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) as process:
                self.addCleanup(process.kill)
                process.stdin.write(_lines(requests))
                process.stdin.flush()
                time.sleep(seconds)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(60), 130)
            if len(self.results()) >= 20:
                break
        self.assertEqual([r["id"] for r in self.results() if r["id"] != "long"], list(range(20)))

    def test_a_signal_while_nothing_comes(self):
        command = [binary(), "batch", "-m", str(stories()), "-i", "-", "-o", str(self.output)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            process.stdin.write(_lines([{"prompt": "The dog", "max_tokens": 3}]))
            process.stdin.flush()
            self.addCleanup(process.kill)
            self.wait_for(1)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), 130)
        self.assertEqual(len(self.results()), 1)

    def test_one_text_of_a_request_is_missing(self):
        requests = [{"id": "a", "prompt": "The dog", "n": 4, "temperature": 1, "max_tokens": 20}]
        whole = self.batch(requests, "--ordered")
        lines = self.output.read_bytes().splitlines(keepends=True)
        self.output.write_bytes(lines[0] + lines[3])
        there = self.batch(requests, "--resume")
        self.assertEqual(_texts(there), _texts(whole))
        self.assertEqual([r["index"] for r in there[:2]], [0, 3])

    def test_an_output_that_holds_something_is_kept_unless_forced(self):
        self.input.write_bytes(_lines([{"prompt": "a", "max_tokens": 1}]))
        self.output.write_text("precious\n")
        self.assertRegex(self.run_failing(*self.command()),
                         "expected a new file, got one of 9 bytes.*--resume.*--force")
        self.assertEqual(self.output.read_text(), "precious\n")
        self.run_kvick(*self.command("--force"))
        self.assertEqual(len(self.results()), 1)
        self.output.write_bytes(b"")
        self.run_kvick(*self.command())
        self.assertEqual(len(self.results()), 1)

    def test_requests_without_ids(self):
        """Resumed by their lines, whatever ids the others have."""
        requests = [{"id": 2, "prompt": "The dog", "max_tokens": 3}, {"prompt": "One", "max_tokens": 4},
                    {"prompt": "a", "max_tokens": 2, "n": 2}, {"id": 3, "prompt": "b", "max_tokens": 1}]
        whole = self.batch(requests, "--ordered")
        lines = self.output.read_bytes().splitlines(keepends=True)
        for kept in ([0], [1], [2], [4], [1, 3], [0, 4]):
            with self.subTest(kept=kept):
                self.output.write_bytes(b"".join(lines[i] for i in kept))
                there = self.batch(requests, "--resume")
                self.assertEqual(sorted(map(self.said, there)), sorted(map(self.said, whole)))

    def test_what_is_no_output_of_batch_is_left_alone(self):
        self.input.write_bytes(_lines([{"prompt": "a", "max_tokens": 1}]))
        for text in ("precious\n", "{}\n", '{"id":1,"index":-1,"text":""}\n', "[]\n",
                     '{"id":1,"error":{}}\n', "[" * 100 + "\n"):
            self.output.write_text(text)
            sentence = self.run_failing(*self.command("--resume"))
            self.assertRegex(sentence, "expected results of kvick batch, line 1 is none")
            self.assertEqual(self.output.read_text(), text)
        self.output.write_text("notes without an end")
        self.assertRegex(self.run_failing(*self.command("--resume")), "the last line is none")
        self.assertEqual(self.output.read_text(), "notes without an end")

    def test_streams_that_are_closed(self):
        self.input.write_bytes(_lines([{"prompt": "a", "max_tokens": 2}]))
        for closed, exit_code in [("<&-", 0), ("2>&-", 0), ("2>/dev/full", 0), (">&-", 0)]:
            self.output.unlink(missing_ok=True)
            command = shlex.join([binary(), *map(str, self.command())]) + " " + closed
            done = subprocess.run(command, shell=True, check=False, timeout=60)
            self.assertEqual(done.returncode, exit_code, closed)
            self.assertEqual(len(self.results()), 1)
        self.output.unlink()
        command = shlex.join([binary(), "batch", "-i", "-", "-o", str(self.output)]) + " <&-"
        done = subprocess.run(command, shell=True, check=False, timeout=60, capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(self.sentence(done.stderr.splitlines(keepends=True)[-1]), "stdin")

    def test_memory_that_was_not_asked_for_is_not_taken(self):
        self.input.write_bytes(_lines([{"prompt": "a", "max_tokens": 2}]))
        process = subprocess.Popen([binary(), *map(str, self.command())], stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status  # waited for
        self.assertEqual(status, 0)
        self.assertLess(usage.ru_maxrss, 600 << 10)  # KiB


class BadLineTest(BatchTest):
    def check(self, lines, *options):
        """The messages of wrong lines, with a good one around each."""
        good = [{"id": f"good {i}", "prompt": "The dog", "max_tokens": 3}
                for i in range(len(lines) + 1)]
        mixed = [good[0]] + [x for pair in zip(lines, good[1:]) for x in pair]
        results = self.batch(mixed, "--ordered", *options, exit_code=1)
        self.assertEqual(len(results), len(mixed))
        self.assertEqual(len({comma(r["tokens"]) for r in results[::2]}), 1)
        self.assertRegex(self.stderr, rf"{len(lines)} of {len(mixed)} requests failed")
        errors = [r["error"] for r in results[1::2]]
        self.assertLessEqual({e["code"] for e in errors}, {"invalid_argument", "exhausted"})
        self.assertEqual([r["line"] for r in results[1::2]], list(range(2, len(mixed), 2)))
        return [e["message"] for e in errors]

    def test_each_fails_alone_and_says_why(self):
        cases = [
            (b"{", "expected JSON"), (b"null", "the line: expected an object, got null"),
            (b"[1]", "got an array"),
            (b"\xff\xfe", "expected JSON"), (b'{"prompt": "\xff"}', "expected JSON"), (b"\0", "expected JSON"),
            (b'{"prompt": "a", "prompt": "b"}', "twice"),
            ({"prompt": "a", "promt": "b"}, '"promt": expected a member that'),
            ({}, "got neither"), ({"prompt": "a", "tokens": [1]}, "got both"),
            ({"prompt": 5}, "prompt.*5"), ({"tokens": "1,2"}, "tokens.*an array"),
            ({"tokens": [1.5]}, "1.5"), ({"tokens": [-1]}, "-1"), ({"tokens": [1 << 31]}, "21474"),
            ({"tokens": [1 << 63]}, str(1 << 63)), ({"tokens": [[1]]}, "an array"),
            ({"tokens": []}, "prompt: expected 1 to 512 tokens.*got 0"), ({"tokens": [512]}, "from 0 to 511, got 512"),
            ({"tokens": [1] * 513}, "got 513"), ({"prompt": "a b" * 400}, "tokens"),
            ({"id": 1.5, "prompt": "a"}, "id: expected a string or an integer, got 1.5"),
            ({"id": [], "prompt": "a"}, "id: expected"),
            ({"id": "x" * 300, "prompt": "a"}, "id: expected at most 256 bytes, got 300"),
            ({"id": "good 0", "prompt": "a"}, 'id: expected a new one, got "good 0" of an earlier'),
            ({"prompt": "a", "cache_salt": 1}, "cache_salt: expected a string, got 1"),
            ({"prompt": "a", "namespace": "x"}, "namespace: expected cache_salt"),
            ({"prompt": "a", "parse_special": 1}, "parse_special.*1"),
            ({"prompt": "a", "max_tokens": 1, "max_completion_tokens": 2}, "got 1 and 2"),
            ({"prompt": "a", "max_completion_tokens": -2}, "max_completion_tokens.*-2"),
            ({"prompt": "a", "max_tokens": 1.5}, "1.5"), ({"prompt": "a", "max_tokens": -2}, "-2"),
            ({"prompt": "a", "max_tokens": "9"}, "max_tokens.*\"9\""),
            ({"prompt": "a", "n": 0}, r"\bn\b.*0"), ({"prompt": "a", "n": 1 << 40}, r"\bn\b.*1099"),
            ({"prompt": "a", "seed": -1}, "seed.*-1"), ({"prompt": "a", "seed": 1 << 63}, "seed"),
            ({"prompt": "a", "temperature": -1}, "temperature.*-1"),
            ({"prompt": "a", "temperature": "hot"}, "temperature.*hot"),
            ({"prompt": "a", "top_k": -2}, "top_k.*-2"), ({"prompt": "a", "top_p": -0.1}, "top_p"),
            ({"prompt": "a", "min_p": 2}, "min_p.*2"),
            ({"prompt": "a", "repetition_penalty": 0}, "repetition_penalty.*0"),
            ({"prompt": "a", "ignore_eos": 1}, "ignore_eos.*1"),
            ({"prompt": "a", "stop": 1}, "stop: expected a string or an array of strings, got 1"),
            ({"prompt": "a", "stop": [1]}, "stop: expected"),
            ({"prompt": "a", "stop": ""}, "empty"), ({"prompt": "a", "stop": ["a"] * 99}, "99"),
            ({"prompt": "a", "logit_bias": []}, "logit_bias.*an array"),
            ({"prompt": "a", "logit_bias": {"x": 1}}, '"x"'),
            ({"prompt": "a", "logit_bias": {"1": "y"}}, '"y"'),
            ({"prompt": "a", "logit_bias": {"1": 1e39}}, r"-1e30 to 1e30, got 1e\+39"),
            ({"prompt": "a", "logit_bias": {"512": 1}}, "512"),
            (b'{"prompt": "a", "temperature": 1e999}', "expected a number.*1e999"),
            (b'{"prompt": "a", "temperature": NaN}', "expected JSON.*NaN"),
            (b'{"prompt": "a", "max_tokens": 1e300}', "max_tokens.*1e\\+300"),
            (b'{"prompt": ' + b"[" * 100000, "nested at most 64 deep"),
        ]
        messages = self.check([line for line, _ in cases])
        for (line, wanted), message in zip(cases, messages):
            with self.subTest(line=line):
                self.assertRegex(message, wanted)

    def test_a_wrong_line_is_known_by_its_number(self):
        self.check([b"{", b"[]", {"id": [], "prompt": "a"}])
        self.assertEqual([r["id"] for r in self.results()[1::2]], [2, 4, 6])

    def test_one_that_never_fits_fails_alone(self):
        line = {"tokens": [1] * 100, "max_tokens": 100}
        [message] = self.check([line], "-c", 300, "--cache-memory", 10 * _BLOCK_BYTES)
        self.assertRegex(message, "13 blocks.*cache of 10")

    def test_a_line_that_is_too_long(self):
        huge = b'{"prompt": "' + b"a" * (17 << 20)
        messages = self.check([huge, huge + b'"}'])
        for message in messages:
            self.assertRegex(message, "at most 16777216 bytes")

    def test_many_values(self):
        for line in (b'{"tokens": [' + b"1," * (4 << 20) + b"1]}",
                     b'{"prompt": "a", "x": [' + b"[]," * (4 << 20) + b"1]}"):
            self.check([line])

    def test_damaged_lines(self):
        rng = random.Random(f"{SEED} damage")
        line = json.dumps({"id": "d", "prompt": "The \u00e9", "max_tokens": 4, "n": 2, "seed": 3,
                           "temperature": 0.5, "stop": ["x", "y"], "logit_bias": {"4": -2.5},
                           "cache_salt": "a", "ignore_eos": True}).encode()
        damaged = []
        for _ in range(100 if QUICK else 1000):
            bad = bytearray(line)
            for _ in range(rng.choice([1, 1, 2, 5])):
                place = rng.randrange(len(bad))
                if rng.random() < 0.3:
                    del bad[place:place + rng.choice([1, 1, 9])]
                else:
                    bad[place:place + rng.randrange(2)] = rng.choice(
                        [b'"', b"{", b"}", b"[", b"9", b"99999999999", b"-", b"e", b",", b"\\",
                         bytes([rng.randrange(256)])])
            damaged.append(bytes(bad).replace(b"\n", b" "))
        results = self.batch(damaged, "-c", 64, exit_code=1)
        self.assertGreaterEqual(len(results), len(damaged))


if __name__ == "__main__":
    kvick_cli.main()
