"""kvick bench: rows that make sense, checked before they are timed. No figure is held to a number."""

import pathlib

import kvick_cli
from kvick_cli import QUICK, CliTest, isas

_DEMO = pathlib.Path(__file__).resolve().parents[2] / "data" / "demo.gguf"
# On one thread: on a busy machine, passes of microseconds wait for a second one for milliseconds.
_SHORT = ("--seconds", "0" if QUICK else "0.05", "--working-set", "8MiB")
_SMALL = (*_SHORT, "-t", "1")
_SMALL_ATTENTION = ("--geometry", "llama-3.2-1b", "--context", "64", "--new", "8", *_SMALL)
_SMALL_LINEAR = ("--rows", "96", "--cols", "64", "--tokens", "1,3,65", *_SMALL)
_SMALL_MODEL = ("-m", _DEMO, "--depth", "40,0", "--sequences", "1,3", "--new", "5", *_SMALL)
_SMALL_APPEND = ("--geometry", "llama-3.2-1b", "--context", "64", *_SHORT)


class BenchTest(CliTest):
    def bench(self, *args):
        """The report, its keys and numbers checked as far as they hold on any machine."""
        report = self.run_json("bench", *args)
        self.assertEqual(set(report), {"machine", "limits", "rows", "ratios"})
        self.assertEqual(set(report["limits"]), {"read_gbps", "matrix_gflops", "memcpy_gbps"})
        self.assertEqual(set(report["machine"]),
                         {"processor", "numerics", "isa", "threads", "cache_bytes", "working_set_bytes"})
        for row in report["rows"]:
            with self.subTest(row=row):
                self.check_row(row, report["limits"])
        for ratio in report["ratios"]:
            self.assertGreater(ratio["value"], 0)
        return report

    def check_row(self, row, limits):
        rate = "gflops" if row["share_of"] == "matrix" else "gbps"
        self.assertLessEqual({"name", "case", "median_us", "quartiles_us", rate, "share", "share_of"},
                             set(row))
        self.assertGreater(row["median_us"], 0)
        low, high = row["quartiles_us"]
        self.assertLessEqual(low, row["median_us"])
        self.assertLessEqual(row["median_us"], high)
        self.assertGreater(row[rate], 0)
        self.assertGreater(row["share"], 0)
        self.assertLess(row["share"], 20)  # of small data in short turns; a wrong unit shows
        self.assertGreater(limits[f"{row['share_of']}_{rate}"], 0)

    def cases(self, report):
        return [(row["name"], row["case"], row["share_of"]) for row in report["rows"]]


class ServingTest(CliTest):
    """kvick bench serving, on few and short requests."""

    _SHORT = ("--requests", "12", "--mean-tokens", "60", "-c", "256", "--cache-memory", "1MiB",
              "--rate", "10000", "--prefix-tokens", "128", "-t", "1")

    def serve(self, *args):
        return self.run_json("bench", "serving", *self._SHORT, *args)

    def check_run(self, run):
        self.assertEqual(run["requests"], 12)
        self.assertGreater(run["output_tokens_per_s"], 0)
        for name in ("first_token_ms", "between_tokens_ms"):
            self.assertLessEqual(run[name]["p50"], run[name]["p90"])
            self.assertLessEqual(run[name]["p90"], run[name]["p99"])
        for name in ("pool_use", "waste", "hit_rate", "overhead"):
            self.assertGreaterEqual(run[name], 0)
            self.assertLessEqual(run[name], 1)

    def test_blocks_and_preallocated_side_by_side(self):
        report = self.serve("--compare")
        paged, contiguous = report["runs"]
        self.assertEqual([paged["layout"], contiguous["layout"]], ["paged 16", "contiguous"])
        for run in (paged, contiguous):
            self.check_run(run)
        self.assertEqual(paged["output_tokens"], contiguous["output_tokens"])
        self.assertGreater(paged["hit_rate"], 0)
        self.assertEqual(contiguous["hit_rate"], 0)
        # 1 MiB are 819 tokens of the demo model: three contexts of 256.
        self.assertLessEqual(contiguous["most_in_flight"], 3)
        self.assertGreater(paged["most_in_flight"], 3)
        self.assertLess(paged["waste"], contiguous["waste"])
        self.assertGreater(paged["prefix"]["miss_over_hit"], 1)
        self.assertEqual(len(report["ratios"]), 2)

    def test_a_trace_from_a_file(self):
        trace = b"".join(b'{"arrival_ms": %d, "prompt_tokens": 20, "output_tokens": 3}\n' % i
                         for i in range(4))
        run = self.serve_trace(trace)
        self.assertEqual((run["requests"], run["prompt_tokens"], run["output_tokens"]), (4, 80, 12))

    def serve_trace(self, trace):
        return self.run_json("bench", "serving", "--trace", "-", "-c", "256", "--cache-memory",
                             "1MiB", "--prefix-tokens", "128", "-t", "1",
                             stdin=trace)["runs"][0]

    def test_what_cannot_be_is_said_in_a_sentence(self):
        for args in [("--cache-memory", "1KiB"), ("--prefix-tokens", "250")]:
            with self.subTest(args=args):
                self.run_failing("bench", "serving", "-c", "256", *args)
        for args in [("--shared-prefix", "2"), ("--mean-tokens", "nan"), ("--requests", "-1")]:
            with self.subTest(args=args):
                self.run_kvick("bench", "serving", *args, exit_code=2)


class RowsTest(BenchTest):
    def test_limits(self):
        report = self.bench("limits", "-t", "2", "--seconds", "0.05", "--working-set", "256MiB")
        self.assertEqual(self.cases(report), [
            ("read", "1 thread", "read"), ("read", "2 threads", "read"),
            ("matrix", "1 thread", "matrix"), ("matrix", "2 threads", "matrix")])
        for all_threads in report["rows"][1::2]:  # the same work as the limit
            self.assertGreater(all_threads["share"], 0.1)
            self.assertLess(all_threads["share"], 10)

    def test_attention(self):
        report = self.bench("attention", *_SMALL_ATTENTION)
        self.assertEqual(self.cases(report), [
            ("decode", "contiguous", "read"), ("decode", "paged 16", "read"),
            ("prefill", "contiguous", "matrix"), ("prefill", "paged 16", "matrix")])
        self.assertEqual([ratio["name"] for ratio in report["ratios"]],
                         ["decode paged 16 / contiguous", "prefill paged 16 / contiguous"])

    def test_attention_counts_the_bytes_of_the_cache_and_the_flops_of_the_formula(self):
        for dtype, num_bytes in [("bf16", 2), ("f16", 2), ("f32", 4)]:
            report = self.bench("attention", *_SMALL_ATTENTION, "--sequences", "3",
                                "--contiguous", "-ctk", dtype)
            self.assertEqual(self.cases(report), [("decode", "contiguous", "read"),
                                                  ("prefill", "contiguous", "matrix")])
            decode, prefill = report["rows"]
            wanted = 3 * 64 * 2 * 8 * 64 * num_bytes  # sequences, context, K and V, heads, dim
            self.assertAlmostEqual(decode["gbps"] * 1e3 * decode["median_us"], wanted, delta=1)
            seen = sum(64 + i for i in range(1, 9))
            self.assertAlmostEqual(prefill["gflops"] * 1e3 * prefill["median_us"],
                                   4 * 32 * 64 * seen, delta=1)

    def test_attention_over_the_shortest_context(self):
        report = self.bench("attention", "--geometry", "llama-3.2-1b", "--context", "1", "--new",
                            "512", *_SHORT, "-t", "1")
        self.assertEqual(len(report["rows"]), 4)

    def test_linear(self):
        for dtype, row_bytes in [("bf16", 128), ("f16", 128), ("f32", 256), ("q8_0", 68)]:
            report = self.bench("linear", "--type", dtype, *_SMALL_LINEAR)
            self.assertEqual(self.cases(report), [
                (f"linear {dtype}", "1 token", "read"), (f"linear {dtype}", "3 tokens", "read"),
                (f"linear {dtype}", "65 tokens", "matrix")])
            one, _, many = report["rows"]
            self.assertAlmostEqual(one["gbps"] * 1e3 * one["median_us"], 96 * row_bytes, delta=1)
            self.assertAlmostEqual(many["gflops"] * 1e3 * many["median_us"], 2 * 65 * 96 * 64,
                                   delta=1)

    def test_model(self):
        report = self.bench("model", *_SMALL_MODEL)
        self.assertEqual(self.cases(report), [
            ("decode", f"depth {depth}, {count}", "read") for depth in [0, 40]
            for count in ["1 sequence", "3 sequences"]] + [("prefill", f"depth {depth}", "matrix") for depth in [0, 40]])
        for row in report["rows"]:
            num_tokens = row["tokens_per_s"] * row["median_us"] / 1e6
            self.assertAlmostEqual(num_tokens, 5 if row["name"] == "prefill" else
                                   int(row["case"].split()[2]), places=6)
        at_0, _, at_40, _ = [row["gbps"] * 1e3 * row["median_us"] for row in report["rows"][:4]]
        model = kvick_cli.inspect(_DEMO)["model"]
        token_bytes = 2 * 2 * model["layers"] * model["kv_heads"] * model["head_dim"]
        self.assertAlmostEqual(at_40 - at_0, 40 * token_bytes, delta=1)

    def test_a_model_that_is_made_up(self):
        report = self.bench("model", "--geometry", "llama-3.2-1b", "--layers", "1", "--vocab",
                            "100", "--type", "q8_0", "-ctk", "f16", "--depth", "3", "--sequences",
                            "2", "--new", "2", *_SMALL)
        self.assertEqual(len(report["rows"]), 2)

    def test_append(self):
        report = self.bench("append", *_SMALL_APPEND)
        self.assertEqual(self.cases(report), [
            ("memcpy", "32768 bytes", "memcpy"), ("append", "paged 16", "memcpy"),
            ("append", "contiguous", "memcpy"), ("concatenate", "behind 64 tokens", "memcpy"),
            ("step", "pool of 2048 blocks", "memcpy"),
            ("step", "pool of 134217728 blocks", "memcpy")])
        self.assertEqual(len(report["ratios"]), 4)

    def test_each_implementation(self):
        for isa in isas():
            with self.subTest(isa=isa):
                report = self.bench("attention", *_SMALL_ATTENTION, "--isa", isa)
                self.assertEqual(report["machine"]["isa"], isa)
                self.bench("linear", *_SMALL_LINEAR, "--isa", isa)
                limits = self.bench("limits", *_SMALL, "--isa", isa)
                self.assertEqual(len(limits["rows"]), 2)

    def test_tables_name_their_units(self):
        text = self.run_kvick("bench", "attention", *_SMALL_ATTENTION).stdout.decode()
        for heading in ["median us", "quartiles us", "GB/s", "GFLOPS", "% of read", "% of matrix"]:
            self.assertIn(heading, text)


class UseTest(BenchTest):
    def test_help_shows_an_example(self):
        for verb in ["limits", "attention", "linear", "model", "append"]:
            text = self.run_kvick("bench", verb, "--help").stdout.decode()
            self.assertRegex(text, rf"Example: kvick bench {verb}")
            self.assertIn("--json", text)

    def test_wrong_use_exits_with_2(self):
        for args, wanted in [
                (("everything",), "expected a verb, got everything"),
                (("limits", "--isa", "mmx"), "mmx"),
                (("limits", "--seconds", "nan"), "--seconds"),
                (("linear", "--tokens", "0"), "--tokens"),
                (("linear", "--type", "q4_0"), "q4_0"),
                (("attention", "--geometry", "llama-9"), "llama-9"),
                (("attention", "--contiguous", "--block-tokens", "16"), "--contiguous"),
                (("model", "-m", "x", "--geometry", "llama-3-8b"), "--model"),
                (("append", "--seconds", "soon"), "--seconds"),
                (("limits", "--working-set", "much"), "--working-set")]:
            with self.subTest(args=args):
                done = self.run_kvick("bench", *args, exit_code=2)
                self.assertEqual(done.stdout, b"")
                self.assertIn(wanted, done.stderr.decode())

    def test_what_cannot_be_done_is_said_in_a_sentence(self):
        for args, wanted in [
                (("linear", "--type", "q8_0", "--cols", "40"), "multiple of 32.*40"),
                (("model", "-m", "no/such/model"), "no/such/model"),
                (("limits", "--working-set", "1PiB"), "memory"),
                (("linear", "--working-set", "512TiB"), "memory"),
                (("linear", "--rows", 1 << 20, "--cols", 1 << 20), "memory"),
                (("attention", "--context", 1 << 24, "--sequences", 1 << 12), "available"),
                (("model", "--geometry", "llama-3.1-405b", "--layers", 126), "memory"),
                (("append", "--context", 1 << 24), "available")]:
            with self.subTest(args=args):
                self.assertRegex(self.run_failing("bench", *args), wanted)


if __name__ == "__main__":
    kvick_cli.main()
