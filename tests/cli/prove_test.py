"""kvick prove: every claim holds on a sound build, a planted bug makes the proof fail, and the page
comes out on every screen."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import browser
import kvick_cli
from kvick_cli import CliTest, binary, stories

_SECTIONS = ["answers", "exactness", "machines", "accuracy", "memory", "speed", "stability", "bugs",
             "hidden_cost", "serving"]


@functools.cache
def demo_report():
    """The proof on the demo model as a page: (the finished process, the folder that holds the page)."""
    folder = tempfile.TemporaryDirectory(prefix="kvick-test-")
    report = pathlib.Path(folder.name, "report.html")
    done = subprocess.run([binary(), "prove", "-n", "24", "--json", "--report", report],
                          capture_output=True, check=False, timeout=600)
    return done, folder


class ProveTest(CliTest):
    def proof_of(self, done):
        """The verdict on each section, and the proof."""
        proof = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if proof["verdict"] == "fails" else 0)
        self.assertEqual([section["name"] for section in proof["sections"]], _SECTIONS)
        for section in proof["sections"]:
            for claim in section["claims"]:
                self.assertIn(claim["verdict"], ("holds", "fails", "not judged"))
                self.assertTrue(claim["explanation"].endswith("."), claim)
        return {section["name"]: section["verdict"] for section in proof["sections"]}, proof

    def check_holds(self, done):
        """Every section holds; a busy machine may leave times unjudged, but not fail them."""
        verdicts, proof = self.proof_of(done)
        self.assertNotEqual(verdicts.pop("speed"), "fails")
        self.assertEqual(set(verdicts.values()), {"holds"}, verdicts)
        return proof

    def test_holds_on_the_demo_model(self):
        proof = self.check_holds(demo_report()[0])
        recorded = {line.split()[1]: line.split()[0] for line in
                    (kvick_cli.data().parents[1] / "data" / "demo.sha256").read_text().splitlines()}
        self.assertEqual(proof["logits"], {"tokens": 120, "sha256": recorded[proof["numerics"]],
                                           "recorded_sha256": recorded[proof["numerics"]]})
        self.assertRegex(proof["made_by"], r"^\d+\.\d+\.\d+ \(")
        self.assertRegex(proof["date"], r"^\d{4}-\d\d-\d\d \d\d:\d\d UTC$")

    @unittest.skipIf(kvick_cli.QUICK, "one proof is enough")
    def test_two_new_tokens_are_enough(self):
        self.check_holds(self.run_prove("-n", "2"))

    @unittest.skipIf(kvick_cli.QUICK, "long")
    def test_holds_on_every_type_of_weights(self):
        for name in ("tiny-q8_0.gguf", "tiny-f16-tied", "tiny-f32-hd128"):
            with self.subTest(model=name):
                self.check_holds(self.run_prove("-n", "8", "-m", kvick_cli.data("models", name)))

    @unittest.skipIf(kvick_cli.QUICK, "sanitizers are slow enough")
    def test_holds_beside_busy_neighbours(self):
        """More loops than cores: times may be unjudged, and nothing fails."""
        busy = [subprocess.Popen(["yes"], stdout=subprocess.DEVNULL)
                for _ in range(len(os.sched_getaffinity(0)) + 1)]
        try:
            self.check_holds(self.run_prove("-n", "4", "-m", stories()))
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def run_prove(self, *args):
        return subprocess.run([binary(), "prove", *args, "--json"], capture_output=True,
                              check=False, timeout=600)

    @unittest.skipIf(kvick_cli.QUICK, "one proof is enough")
    def test_a_planted_bug_makes_it_fail(self):
        """One of them: the section on bugs plants all four in every run."""
        done = self.run_prove("-n", "24", "-m", stories(), "--inject", "reset")
        verdicts, proof = self.proof_of(done)
        self.assertEqual(verdicts["answers"], "fails")
        self.assertEqual(proof["injected"], "reset")
        self.assertEqual(proof["hidden_cost"]["contiguous"]["reserved_bytes"], 8 << 30)
        self.assertEqual(proof["hidden_cost"]["contiguous"]["used_bytes"], 8 * 1000 * 131072)
        self.assertEqual(proof["hidden_cost"]["paged"]["requests_that_fit"], 65)

    def test_the_page_fits_every_screen_in_both_colour_schemes(self):
        page = pathlib.Path(demo_report()[1].name, "report.html")
        backgrounds = set()
        for width in (360, 620, 1200):
            for scheme in ("light", "dark"):
                with self.subTest(width=width, scheme=scheme):
                    seen = browser.measure(page, width, scheme)
                    self.assertEqual(seen["width"], width)
                    self.assertEqual(seen["drawings"], 3)
                    self.assertEqual(seen["loaded"], 0, "it asks for other files")
                    self.assertLessEqual(seen["overflow"], 0)
                    self.assertEqual(seen["cut"], [])
                    self.assertEqual(seen["overlapping"], [])
                    backgrounds.add(seen["background"])
        self.assertEqual(len(backgrounds), 2)

    def test_wrong_use_is_told_from_a_claim_that_fails(self):
        for options in (("-n", "1"), ("--isa", "mmx"), ("--inject", "typo"), ("-t", "0")):
            with self.subTest(options=options):
                self.run_kvick("prove", *options, exit_code=2)

    def test_a_context_that_is_too_short_is_said(self):
        folder = self.folder / "short"
        shutil.copytree(kvick_cli.stories_folder(), folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").chmod(0o644)
        (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 127}))
        self.assertIn("expected at least 128 tokens, got 127",
                      self.run_failing("prove", "-m", folder))

    def test_what_the_memory_is_too_small_for_is_not_judged(self):
        """Address space stands for it; sanitizers take terabytes of that."""
        if kvick_cli.QUICK:
            self.skipTest("not under sanitizers")
        done = subprocess.run(["prlimit", f"--as={3 << 29}", binary(), "prove", "-n", "2", "--json"],
                              capture_output=True, check=False, timeout=600)
        self.assertEqual(done.returncode, 0)
        verdicts, proof = self.proof_of(done)
        self.assertEqual(verdicts["hidden_cost"], "not judged")
        self.assertEqual(verdicts["answers"], "holds")
        self.assertEqual(proof["verdict"], "holds")
        self.assertNotIn("fails", verdicts.values())

    def test_a_page_that_cannot_be_written_is_found_before_the_proof(self):
        sentence = self.run_failing("prove", "no.gguf", "--report", "/no/such/folder/x.html")
        self.assertIn("/no/such/folder/x.html: cannot write", sentence)
        self.assertIn("cannot write", self.run_failing("prove", "no.gguf", "--report", self.folder))


if __name__ == "__main__":
    kvick_cli.main()
