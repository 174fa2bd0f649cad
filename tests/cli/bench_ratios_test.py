"""Speeds held against each other and against the limits of the machine in one run, never times.

A bound is a little over half of what a quiet machine shows: a kernel that has become twice as slow
misses it. Figures that the bench does not trust do not count, and are measured again.
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


def _row(report, name, case):
    """The share of a row, and whether it can be trusted."""
    return next((row["share"], row["trusted"]) for row in report["rows"]
                if (row["name"], row["case"]) == (name, case))


def _ratio(report, name):
    return next((ratio["value"], ratio["trusted"]) for ratio in report["ratios"]
                if ratio["name"] == name)


def _quotient(a, b):
    return (a[0] / b[0] if a[1] and b[1] else None), a[1] and b[1]


# What is looked at: of which run, how, and at least how much on an isa.
_FIGURES = {
    "decode attention, of read bandwidth":
        ("attention", lambda r: _row(r, "decode", "contiguous"), {"avx512": 0.45}),
    "decode attention in blocks of 16, of one block":
        ("attention", lambda r: _ratio(r, "decode paged 16 / contiguous"),
         {"avx512": 0.7}),
    "prefill attention, of the FMA peak":
        ("attention", lambda r: _row(r, "prefill", "contiguous"), {"avx512": 0.25}),
    "linear of 1 token, of read bandwidth":
        ("linear", lambda r: _row(r, "linear bf16", "1 token"), {"avx512": 0.5}),
    "linear of 4 tokens, of 1 token":
        ("linear", lambda r: _quotient(_row(r, "linear bf16", "4 tokens"),
                                       _row(r, "linear bf16", "1 token")), {"avx512": 0.5}),
    "linear of 256 tokens, of the FMA peak":
        ("linear", lambda r: _row(r, "linear bf16", "256 tokens"), {"avx512": 0.3}),
    "append, of memcpy":
        ("append", lambda r: _row(r, "append", "paged 16"), {"avx512": 0.26}),
    "step of the cache in a large pool, of a small one":
        ("append", lambda r: _ratio(r, "step: large pool / small pool"), {"avx512": 0.6}),
}


class BenchRatiosTest(CliTest):
    def test_no_kernel_has_become_twice_as_slow(self):
        best = {}
        for _ in range(_TRIES):
            runs = {_FIGURES[name][0] for name in _FIGURES if name not in best}
            runs |= {_FIGURES[name][0] for name in self.missed(best)}
            for run in sorted(runs):
                self.measure(run, best)
        for name, (value, bound) in sorted(best.items()):
            print(f"{name}: {value:.3f}, at least {bound}")
        if not best:
            self.skipTest("no figure can be trusted on this machine now")
        if set(_FIGURES) - set(best):
            print(f"never to be trusted on this machine now: {sorted(set(_FIGURES) - set(best))}")
        self.assertEqual(self.missed(best), {})

    def missed(self, best):
        return {name: value for name, (value, bound) in best.items() if value < bound}

    def measure(self, run, best):
        report = self.run_json("bench", *_RUNS[run])
        isa = report["machine"]["isa"]
        for name, (of_run, figure_of, bounds) in _FIGURES.items():
            if of_run != run:
                continue
            if isa not in bounds:
                self.skipTest(f"nothing is known of {isa}")
            value, is_trusted = figure_of(report)
            if is_trusted:
                before, _ = best.get(name, (0, 0))
                best[name] = max(before, value), bounds[isa]


if __name__ == "__main__":
    kvick_cli.main()
