"""Speeds held against each other and against the limits of the machine in one run, never times.

A bound is a little over half of what a quiet machine shows: a noisy one meets it in one of some
tries, and a kernel that has become twice as slow does not.
"""

import kvick_cli
from kvick_cli import CliTest

_TRIES = 6
_SECONDS = ("--seconds", "0.4")
_RUNS = {
    "attention": ("attention", "--context", "4096", "--new", "128", *_SECONDS),
    "linear": ("linear", "--tokens", "1,4,256", "--rows", "4096", *_SECONDS),
    "append": ("append", *_SECONDS),
}


def _share(report, name, case):
    return next(row["share"] for row in report["rows"]
                if (row["name"], row["case"]) == (name, case))


def _ratio(report, name):
    return next(ratio["value"] for ratio in report["ratios"] if ratio["name"] == name)


# What is looked at: of which run, how, and at least how much on an isa.
_FIGURES = {
    "decode attention, of read bandwidth":
        ("attention", lambda r: _share(r, "decode", "contiguous"), {"avx512": 0.45}),
    "decode attention in blocks of 16, of one block":
        ("attention", lambda r: _ratio(r, "decode paged 16 / contiguous"),
         {"avx512": 0.7}),
    "prefill attention, of the matrix peak":
        ("attention", lambda r: _share(r, "prefill", "contiguous"), {"avx512": 0.25}),
    "linear of 1 token, of read bandwidth":
        ("linear", lambda r: _share(r, "linear bf16", "1 token"), {"avx512": 0.5}),
    "linear of 4 tokens, of 1 token":
        ("linear", lambda r: (_share(r, "linear bf16", "4 tokens")
                              / _share(r, "linear bf16", "1 token")), {"avx512": 0.5}),
    "linear of 256 tokens, of the matrix peak":
        ("linear", lambda r: _share(r, "linear bf16", "256 tokens"), {"avx512": 0.3}),
    "append, of memcpy":
        ("append", lambda r: _share(r, "append", "paged 16"), {"avx512": 0.26}),
    "step of the cache in a large pool, of a small one":
        ("append", lambda r: _ratio(r, "step: large pool / small pool"), {"avx512": 0.6}),
}


class BenchRatiosTest(CliTest):
    def test_no_kernel_has_become_twice_as_slow(self):
        best = {}
        for _ in range(_TRIES):
            missed = self.missed(best)
            if best and not missed:
                break
            runs = {_FIGURES[name][0] for name in missed} if best else set(_RUNS)
            for run in sorted(runs):
                self.measure(run, best)
        for name, (value, bound) in sorted(best.items()):
            print(f"{name}: {value:.3f}, at least {bound}")
        self.assertEqual(self.missed(best), {})

    def missed(self, best):
        return {name: value for name, (value, bound) in best.items() if value < bound}

    def measure(self, run, best):
        report = self.run_json("bench", *_RUNS[run])
        isa = report["machine"]["isa"]
        for name, (of_run, value_of, bounds) in _FIGURES.items():
            if of_run != run:
                continue
            if isa not in bounds:
                self.skipTest(f"nothing is known of {isa}")
            before, _ = best.get(name, (0, 0))
            best[name] = max(before, value_of(report)), bounds[isa]


if __name__ == "__main__":
    kvick_cli.main()
