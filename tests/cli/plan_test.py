"""kvick plan: the figures of caches, for known models, files and a config.json alone."""

import json

import kvick_cli
from kvick_cli import CliTest, data, stories


class PlanTest(CliTest):
    def test_llama_3_8b(self):
        plan = self.run_json("plan", "llama-3-8b")
        self.assertEqual(plan["bytes_per_token"], 131072)
        self.assertEqual(plan["request_bytes"], 1 << 30)
        self.assertEqual(plan["requests_bytes"], 8 << 30)
        self.assertEqual(plan["contiguous"]["reserved_bytes"], 8 << 30)
        self.assertEqual(plan["contiguous"]["used_bytes"], 8000 * 131072)
        self.assertEqual(plan["contiguous"]["empty_bytes"], (8 << 30) - 8000 * 131072)
        self.assertEqual(plan["paged"]["reserved_bytes"], 8 * 63 * 16 * 131072)
        self.assertEqual(plan["weight_bytes"], 2 * 8030261248)

    def test_requests_that_fit_beside_the_weights(self):
        plan = self.run_json("plan", "llama-3-8b", "--memory", "24GiB")
        room = (24 << 30) - plan["weight_bytes"]
        self.assertEqual(plan["contiguous"]["requests_that_fit"], room // (1 << 30))
        self.assertEqual(plan["paged"]["requests_that_fit"], room // (63 * 16 * 131072))
        small = self.run_json("plan", "llama-3-8b", "--memory", "1GiB")
        self.assertEqual(small["paged"]["requests_that_fit"], 0)

    def test_types_cost_what_their_elements_do(self):
        for dtype, token_bytes in [("bf16", 131072), ("f16", 131072), ("f32", 262144)]:
            plan = self.run_json("plan", "llama-3-8b", "-ctk", dtype)
            self.assertEqual(plan["bytes_per_token"], token_bytes)

    def test_a_config_alone_is_enough(self):
        config = data("models", "tiny-bf16-sharded", "config.json")
        plan = self.run_json("plan", config)
        self.assertEqual(plan["bytes_per_token"], 2 * 2 * 2 * 16 * 2)
        folder = self.run_json("plan", config.parent)
        self.assertEqual(folder["bytes_per_token"], plan["bytes_per_token"])
        self.assertEqual(folder["weight_bytes"], plan["weight_bytes"])

    def test_a_file(self):
        self.assertEqual(self.run_json("plan", stories(), "-c", 512, "--mean-tokens", 9)
                         ["bytes_per_token"], 2 * 5 * 4 * 8 * 2)

    def test_what_cannot_be(self):
        self.assertIn("llama-3-8b", self.run_failing("plan", "llama-9"))
        self.assertRegex(self.run_failing("plan", "llama-3-8b", "-c", 10, "--mean-tokens", 11),
                         "11.*10")
        bad = self.folder / "config.json"
        bad.write_text(json.dumps({"model_type": "llama"}))
        self.run_failing("plan", bad)


if __name__ == "__main__":
    kvick_cli.main()
