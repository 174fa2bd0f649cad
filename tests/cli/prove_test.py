"""kvick prove: every claim holds on a sound build, and a planted bug makes the proof fail."""

import json
import subprocess

import kvick_cli
from kvick_cli import CliTest, binary, stories

_SECTIONS = ["answers", "exactness", "accuracy", "memory", "speed", "stability", "bugs",
             "hidden_cost"]


class ProveTest(CliTest):
    def prove(self, *options):
        """Which sections hold, and the proof. The times of a busy machine may fail it."""
        done = subprocess.run([binary(), "prove", "-n", "24", "--json", *options],
                              capture_output=True, check=False, timeout=600)
        proof = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if proof["holds"] else 1)
        self.assertEqual([section["name"] for section in proof["sections"]], _SECTIONS)
        return {section["name"]: section["holds"] for section in proof["sections"]}, proof

    def check_holds(self, *options):
        holds, _ = self.prove(*options)
        del holds["speed"]
        self.assertTrue(all(holds.values()), holds)

    def test_holds_on_the_demo_model(self):
        self.check_holds()

    def test_a_planted_bug_makes_it_fail(self):
        """One of them: the section on bugs plants all four in every run."""
        holds, proof = self.prove("-m", stories(), "--inject", "reset")
        self.assertFalse(holds["answers"])
        self.assertEqual(proof["injected"], "reset")
        self.assertEqual(proof["hidden_cost"]["contiguous"]["reserved_bytes"], 8 << 30)
        self.assertEqual(proof["hidden_cost"]["contiguous"]["used_bytes"], 8 * 1000 * 131072)
        self.assertEqual(proof["hidden_cost"]["paged"]["requests_that_fit"], 65)


if __name__ == "__main__":
    kvick_cli.main()
