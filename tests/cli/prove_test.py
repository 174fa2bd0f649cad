"""kvick prove: every claim holds on a sound build, and each planted bug makes the proof fail."""

import json
import subprocess

import kvick_cli
from kvick_cli import QUICK, CliTest, binary, models, stories

_SECTIONS = ["answers", "exactness", "accuracy", "memory", "speed", "stability", "bugs",
             "hidden_cost"]


class ProveTest(CliTest):
    def prove(self, model, *options):
        """The exit code and the proof. It may fail by the times of a busy machine alone."""
        done = subprocess.run([binary(), "prove", "-m", model, "-n", "24", "--json", *options],
                              capture_output=True, check=False, timeout=600)
        proof = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if proof["holds"] else 1)
        self.assertEqual([section["name"] for section in proof["sections"]], _SECTIONS)
        return {section["name"]: section["holds"] for section in proof["sections"]}, proof

    def test_holds_on_every_model(self):
        for model in [stories()] if QUICK else models():
            with self.subTest(model=model.name):
                holds, _ = self.prove(model)
                del holds["speed"]
                self.assertTrue(all(holds.values()), holds)

    def test_a_planted_bug_makes_it_fail(self):
        for bug in ["rope"] if QUICK else ["rope", "mask", "reset", "heads"]:
            with self.subTest(bug=bug):
                holds, proof = self.prove(stories(), "--inject", bug)
                self.assertFalse(holds["answers"])
                self.assertEqual(proof["injected"], bug)

    def test_the_hidden_cost_is_what_the_formula_says(self):
        _, proof = self.prove(stories())
        self.assertEqual(proof["hidden_cost"]["contiguous"]["reserved_bytes"], 8 << 30)
        self.assertEqual(proof["hidden_cost"]["contiguous"]["used_bytes"], 8 * 1000 * 131072)
        self.assertEqual(proof["hidden_cost"]["paged"]["requests_that_fit"], 65)


if __name__ == "__main__":
    kvick_cli.main()
