"""kvick bench: rows that make sense, checked before they are timed. No figure is held to a number."""

import json
import pathlib
import subprocess

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
        self.assertEqual(set(report["machine"]),
                         {"processor", "numerics", "isa", "threads", "cache_bytes", "working_set_bytes"})
        for limit in report["limits"].values():
            self.assertGreater(limit.get("gbps", limit.get("gflops")), 0)
        for row in report["rows"]:
            with self.subTest(row=row):
                self.check_row(row, report["limits"])
        for ratio in report["ratios"]:
            self.assertGreater(ratio["value"], 0)
            self.check_trust(ratio)
        return report

    def check_row(self, row, limits):
        self.assertLessEqual({"name", "case", "quiet_us", "median_us", "quartiles_us", "share",
                              "share_of", "spread", "rounds"}, set(row))
        self.assertGreater(row["quiet_us"], 0)
        low, high = row["quartiles_us"]
        self.assertLessEqual(row["quiet_us"], low * (1 + 1e-9))
        self.assertLessEqual(low, row["median_us"])
        self.assertLessEqual(row["median_us"], high)
        self.assertTrue({"gbps", "gflops"} & set(row))
        self.assertGreaterEqual(row["rounds"], 3)
        for limit in row["share_of"].split(" + "):
            self.assertIn(limit, limits)
        self.check_trust(row)
        if row["share"] is None:  # more than the limit is no result
            self.assertFalse(row["trusted"])
        else:
            self.assertGreater(row["share"], 0)
            self.assertLessEqual(row["share"], 1.05)

    def check_trust(self, figure):
        self.assertGreaterEqual(figure["spread"], 0)
        self.assertEqual("distrust" in figure, not figure["trusted"])
        if figure["spread"] > 0.1:
            self.assertFalse(figure["trusted"])

    def cases(self, report):
        return [(row["name"], row["case"]) for row in report["rows"]]

    def limits(self, report):
        return [row["share_of"] for row in report["rows"]]


class ServingTest(CliTest):
    """kvick bench serving, on few and short requests."""

    SHORT = ("--requests", "12", "--mean-tokens", "60", "-c", "256", "--cache-memory", "1MiB",
              "--rate", "10000", "--prefix-tokens", "128", "-t", "1")

    def serve(self, *args):
        return self.run_json("bench", "serving", *self.SHORT, *args)

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
        kinds = list(dict.fromkeys(row["name"] for row in report["rows"]))
        self.assertEqual(kinds[:2], ["read", "f32 fma"])
        self.assertEqual(self.cases(report), [
            (kind, threads) for kind in kinds for threads in ("1 thread", "2 threads")])
        self.assertEqual(self.limits(report), [kind for kind in kinds for _ in range(2)])
        self.assertEqual(set(report["limits"]), set(kinds))

    def test_limits_follow_the_isa(self):
        wanted = {"scalar": {"f32 fma"}, "neon": {"f32 fma"}, "avx2": {"f32 fma", "int16 dot"},
                  "avx512-bf16": {"f32 fma", "bf16 dot", "int16 dot"},
                  "avx512": {"f32 fma", "int16 dot"}}
        for isa in isas():
            with self.subTest(isa=isa):
                limits = self.bench("limits", *_SMALL, "--isa", isa)["limits"]
                kinds = set(limits) - {"read", "int8 dot"}
                tiles = {"f32 fma", "int16 dot", "bf16 tiles"}
                self.assertEqual(kinds, wanted.get(isa, tiles))

    def test_attention(self):
        report = self.bench("attention", *_SMALL_ATTENTION)
        self.assertEqual(self.cases(report), [
            ("decode", "contiguous"), ("decode", "paged 16"),
            ("prefill", "contiguous"), ("prefill", "paged 16")])
        self.assertEqual([ratio["name"] for ratio in report["ratios"]],
                         ["decode paged 16 / contiguous", "prefill paged 16 / contiguous"])

    def test_attention_counts_the_bytes_of_the_cache_and_the_flops_of_the_formula(self):
        for dtype, num_bytes in [("bf16", 2), ("f16", 2), ("f32", 4)]:
            report = self.bench("attention", *_SMALL_ATTENTION, "--sequences", "3",
                                "--contiguous", "-ctk", dtype)
            self.assertEqual(self.cases(report),
                             [("decode", "contiguous"), ("prefill", "contiguous")])
            decode, prefill = report["rows"]
            wanted = 3 * 64 * 2 * 8 * 64 * num_bytes  # sequences, context, K and V, heads, dim
            self.assertAlmostEqual(decode["gbps"] * 1e3 * decode["quiet_us"], wanted, delta=1)
            seen = sum(64 + i for i in range(1, 9))
            self.assertAlmostEqual(prefill["gflops"] * 1e3 * prefill["quiet_us"],
                                   4 * 32 * 64 * seen, delta=1)

    def test_attention_over_the_shortest_context(self):
        report = self.bench("attention", "--geometry", "llama-3.2-1b", "--context", "1", "--new",
                            "512", *_SHORT, "-t", "1")
        self.assertEqual(len(report["rows"]), 4)

    def test_linear(self):
        for dtype, row_bytes in [("bf16", 128), ("f16", 128), ("f32", 256), ("q8_0", 68),
                                 ("q4_0", 36)]:
            report = self.bench("linear", "--type", dtype, *_SMALL_LINEAR)
            self.assertEqual(self.cases(report), [
                (f"linear {dtype}", "1 token"), (f"linear {dtype}", "3 tokens"),
                (f"linear {dtype}", "65 tokens")])
            self.assertNotEqual(self.limits(report)[-1], "read")
            one, _, many = report["rows"]
            self.assertAlmostEqual(one["gbps"] * 1e3 * one["quiet_us"], 96 * row_bytes, delta=1)
            # A weight meets the two bytes of an activation one after the other.
            num_products = 2 if many["share_of"] == "int8 dot" else 1
            self.assertAlmostEqual(many["gflops"] * 1e3 * many["quiet_us"],
                                   num_products * 2 * 65 * 96 * 64, delta=1)

    def test_model(self):
        report = self.bench("model", *_SMALL_MODEL)
        self.assertEqual(self.cases(report), [
            ("decode", f"depth {depth}, {count}") for depth in [0, 40]
            for count in ["1 sequence", "3 sequences"]] + [
                ("prefill", f"depth {depth}") for depth in [0, 40]])
        for row in report["rows"]:
            num_tokens = row["tokens_per_s"] * row["quiet_us"] / 1e6
            self.assertAlmostEqual(num_tokens, 5 if row["name"] == "prefill" else
                                   int(row["case"].split()[2]), places=6)
        at_0, _, at_40, _ = [row["gbps"] * 1e3 * row["quiet_us"] for row in report["rows"][:4]]
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
            ("memcpy", "32768 bytes"), ("append", "paged 16"),
            ("append", "contiguous"), ("concatenate", "behind 64 tokens"),
            ("step", "pool of 2048 blocks"),
            ("step", "pool of 134217728 blocks")])
        self.assertEqual(self.limits(report), ["memcpy"] * 6)
        self.assertEqual(len(report["ratios"]), 4)

    def test_each_implementation(self):
        for isa in isas():
            with self.subTest(isa=isa):
                report = self.bench("attention", *_SMALL_ATTENTION, "--isa", isa)
                self.assertEqual(report["machine"]["isa"], isa)
                self.bench("linear", *_SMALL_LINEAR, "--isa", isa)

    def test_tables_name_their_units(self):
        text = self.run_kvick("bench", "attention", *_SMALL_ATTENTION).stdout.decode()
        for heading in ["quiet us", "median us", "GB/s", "GFLOPS", "share %", "spread %", "of"]:
            self.assertIn(heading, text)


class ModelTest(BenchTest):
    _SHORT = ("--sequences", "1", *_SMALL)

    def test_takes_every_file_and_folder(self):
        for model in kvick_cli.models():
            with self.subTest(model=model):
                report = self.bench("model", "-m", model, "--depth", "0", "--new", "3",
                                    *self._SHORT)
                self.assertEqual(len(report["rows"]), 2)

    def test_leaves_out_default_depths_beyond_the_context(self):
        report = self.bench("model", "-m", _DEMO, *self._SHORT)
        self.assertEqual(self.cases(report), [("decode", "depth 0, 1 sequence"),
                                              ("prefill", "depth 0")])

    def test_refuses_depths_beyond_the_context(self):
        context = kvick_cli.inspect(_DEMO)["model"]["context_tokens"]
        for args, most in [(("--new", "10", "--depth", f"0,{context - 9}"), context - 10),
                           (("--new", "1", "--depth", context - 1), context - 2),
                           (("--new", context + 1, "--depth", "0"), 0)]:
            with self.subTest(args=args):
                said = self.run_failing("bench", "model", "-m", _DEMO, *args, *self._SHORT)
                self.assertRegex(said, f"--depth: expected at most {most} .*{context} tokens")


class StrictTest(BenchTest):
    def test_exits_with_3_if_a_row_cannot_be_trusted(self):
        for args in [("limits", *_SMALL), ("attention", *_SMALL_ATTENTION),
                     ("linear", *_SMALL_LINEAR), ("model", *_SMALL_MODEL),
                     ("append", *_SMALL_APPEND), ("serving", *ServingTest.SHORT)]:
            with self.subTest(args=args):
                done = subprocess.run([kvick_cli.binary(), "bench", *map(str, args), "--strict",
                                       "--json"], capture_output=True, timeout=120, check=False)
                report = json.loads(done.stdout)
                figures = report["rows"] + report["ratios"]
                num_untrusted = sum(not figure["trusted"] for figure in figures)
                self.assertEqual(done.returncode, 3 if num_untrusted else 0)
                self.assertEqual(done.stderr.decode(), num_untrusted and (
                    f"kvick: bench --strict: expected rows that can be trusted, got "
                    f"{num_untrusted} of {len(figures)} that cannot\n") or "")


class CompareTest(BenchTest):
    _A = [{"name": "linear bf16", "case": "1 token", "quiet_us": 1000, "share": 0.8,
           "spread": 0.02, "trusted": True},
          {"name": "decode", "case": "depth 0", "quiet_us": 20, "tokens_per_s": 50, "share": 0.5,
           "spread": 0.01, "trusted": True},
          {"name": "prefill", "case": "depth 0", "quiet_us": 10, "share": None, "spread": 0.5,
           "trusted": False},
          {"name": "append", "case": "paged 16", "quiet_us": 10, "share": 0.4, "spread": 0,
           "trusted": True}]
    _B = [{"name": "decode", "case": "depth 0", "quiet_us": 20, "tokens_per_s": 100,
           "share": 0.75, "spread": 0.03, "trusted": True},
          {"name": "linear bf16", "case": "1 token", "quiet_us": 800, "share": 0.9, "spread": 0.01,
           "trusted": True},
          {"name": "prefill", "case": "depth 0", "quiet_us": 10, "share": 0.6, "spread": 0.01,
           "trusted": True},
          {"name": "step", "case": "pool", "quiet_us": 10, "share": 0.4, "spread": 0,
           "trusted": True}]

    def files(self, a, b):
        folder = self.folder
        paths = folder / "a.json", folder / "b.json"
        for path, rows in zip(paths, (a, b)):
            path.write_bytes(rows if isinstance(rows, bytes) else json.dumps(
                {"machine": {"processor": "P", "isa": "avx2"}, "rows": rows}).encode())
        return paths

    def test_matches_rows_by_name_and_case(self):
        rows = self.run_json("bench", "compare", *self.files(self._A, self._B))["rows"]
        self.assertEqual(self.cases({"rows": rows}), [
            ("linear bf16", "1 token"), ("decode", "depth 0"), ("prefill", "depth 0"),
            ("append", "paged 16"), ("step", "pool")])
        linear, decode, prefill, append, step = rows
        self.assertEqual(linear["share"], {"a": 0.8, "b": 0.9})
        self.assertAlmostEqual(linear["share_ratio"], 0.9 / 0.8)
        self.assertAlmostEqual(linear["speed_ratio"], 1000 / 800)
        self.assertAlmostEqual(linear["spread"], 0.03)
        self.assertAlmostEqual(decode["speed_ratio"], 2)
        self.assertIsNone(prefill["share_ratio"])
        self.assertEqual([linear["trusted"], prefill["trusted"]], [True, False])
        self.assertEqual([append["only_in"], step["only_in"]], ["a", "b"])

    def test_for_people(self):
        text = self.run_kvick("bench", "compare",
                              *self.files(self._A, self._B)).stdout.decode()
        self.assertRegex(text, r"linear bf16  1 token +80\.0 +90\.0 +1\.125 +1\.250 +3\.0\n")
        self.assertRegex(text, r"prefill  depth 0 .*untrusted: A\n")
        self.assertRegex(text, r"append  paged 16 +only in A\n")
        self.assertRegex(text, r"step  pool +only in B\n")

    def test_strict(self):
        a, b = self.files(self._A, self._B)
        said = self.run_kvick("bench", "compare", a, b, "--strict", exit_code=3).stderr.decode()
        self.assertIn("1 of 5", said)
        self.run_kvick("bench", "compare", b, b, "--strict", exit_code=0)

    def test_of_what_a_bench_prints(self):
        for args in [("linear", *_SMALL_LINEAR), ("serving", *ServingTest.SHORT)]:
            report = self.run_kvick("bench", *args, "--json").stdout
            rows = self.run_json("bench", "compare", *self.files(report, report))["rows"]
            self.assertEqual(self.cases({"rows": rows}), self.cases(json.loads(report)))
            for row in rows:
                self.assertEqual(row["speed_ratio"], 1)

    def test_refuses_what_no_bench_printed(self):
        row = self._A[0]
        damaged = [b"", b"{", b"[]", b"3", b"{}", b'{"rows": 3}', b"\xff\xfe", b"[" * 100_000,
                   [3], [{}], [None]]
        damaged += [[{key: value for key, value in row.items() if key != left_out}]
                    for left_out in ("name", "case", "quiet_us", "trusted")]
        damaged += [[{**row, key: value}] for key, value in [
            ("name", 3), ("case", None), ("quiet_us", "fast"), ("quiet_us", -1), ("quiet_us", 0),
            ("trusted", "yes")]]
        for rows in damaged:
            with self.subTest(rows=rows):
                a, b = self.files(self._A, rows)
                said = self.run_failing("bench", "compare", a, b)
                self.assertRegex(said, r"b\.json: expected the output of `kvick bench --json`, got")
        self.assertIn("no/such", self.run_failing("bench", "compare", "no/such", "no/such"))
        self.run_kvick("bench", "compare", "one.json", exit_code=2)


class UseTest(BenchTest):
    def test_help_shows_an_example(self):
        for verb in ["limits", "attention", "linear", "model", "append", "serving", "compare"]:
            text = self.run_kvick("bench", verb, "--help").stdout.decode()
            self.assertRegex(text, rf"Example: kvick bench {verb}")
            self.assertIn("--json", text)
            self.assertIn("--strict", text)

    def test_wrong_use_exits_with_2(self):
        for args, wanted in [
                (("everything",), "expected a verb, got everything"),
                (("limits", "--isa", "mmx"), "mmx"),
                (("limits", "--seconds", "nan"), "--seconds"),
                (("linear", "--tokens", "0"), "--tokens"),
                (("linear", "--type", "q4_9"), "q4_9"),
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
