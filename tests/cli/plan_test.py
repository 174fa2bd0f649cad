"""kvick plan: the figures of caches, for known models, files and a config.json alone."""

import json

import kvick_cli
from kvick_cli import CliTest, data, models


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

    def test_a_file_is_planned_as_generate_runs_it(self):
        for model in models():
            for options in [(), ("-ctk", "f16"), ("-c", 40)]:
                with self.subTest(model=model.name, options=options):
                    plan = self.run_json("plan", model, *options)
                    run = self.run_json("generate", model, "--tokens", "1", "-n", 1, *options)
                    self.assertEqual(plan["dtype"], run["cache"]["dtype"])
                    self.assertEqual(plan["bytes_per_token"], run["cache"]["bytes_per_token"])
                    self.assertEqual(plan["context_tokens"], run["context_tokens"])

    def test_the_default_context_is_the_models_as_far_as_half_of_the_memory_goes(self):
        for name, options, tokens in [("llama-2-7b", (), 4096), ("llama-3-8b", (), 8192),
                                      ("llama-3.1-8b", ("--memory", "1GiB"), 4096),
                                      ("llama-3.1-8b", ("--memory", "1.5GiB"), 6144),
                                      ("llama-3.1-8b", ("-c", 9000), 9000)]:
            self.assertEqual(self.run_json("plan", name, *options)["context_tokens"], tokens)

    def test_sizes_as_people_write_them(self):
        for text, num_bytes in [("1.5GiB", 3 << 29), ("0.5gib", 1 << 29), ("1.5GB", 1500000000),
                                ("2 GiB", 2 << 30), ("1073741824", 1 << 30), ("1Gi", 1 << 30),
                                ("1000000k", 10**9), ("2147483648b", 1 << 31)]:
            with self.subTest(text=text):
                plan = self.run_json("plan", "llama-3-8b", "--memory", text)
                self.assertEqual(plan["memory_bytes"], num_bytes)

    def test_numbers_are_decimal(self):
        self.assertEqual(self.run_json("plan", "llama-3-8b", "-c", "010")["context_tokens"], 10)
        self.run_kvick("plan", "llama-3-8b", "-c", "0x10", exit_code=2)

    def test_what_cannot_be(self):
        self.assertIn("llama-3-8b", self.run_failing("plan", "llama-9"))
        self.assertRegex(self.run_failing("plan", "llama-3-8b", "-c", 10, "--mean-tokens", 11),
                         "--mean-tokens: expected at most the context of 10, got 11")
        huge = 1 << 31
        self.assertIn("2^63", self.run_failing("plan", "llama-3-8b", "-c", huge, "--requests", huge,
                                               "--mean-tokens", huge))
        self.run_failing("plan", "x" * 5000)
        bad = self.folder / "config.json"
        bad.write_text(json.dumps({"model_type": "llama"}))
        self.run_failing("plan", bad)


if __name__ == "__main__":
    kvick_cli.main()
