"""kvick inspect: metadata, tensors, tokenizer, and what a token of the cache costs."""

import json
import math
import shutil

import kvick_cli
from kvick_cli import CliTest, data, models, shared, stories, stories_folder


class InspectTest(CliTest):
    def test_json_describes_every_model(self):
        for model in models():
            with self.subTest(model=model.name):
                result = self.run_json("inspect", model)
                self.assertTrue(result["metadata"])
                self.assertTrue(result["tensors"])
                sizes = result["model"]
                for dtype, number_bytes in [("bf16", 2), ("f16", 2), ("f32", 4)]:
                    token_bytes = (2 * sizes["layers"] * sizes["kv_heads"] * sizes["head_dim"] *
                                   number_bytes)
                    self.assertEqual(result["cache"][dtype], {
                        "bytes_per_token": token_bytes,
                        "bytes_per_context": token_bytes * sizes["context_tokens"]})

    def test_both_formats_of_a_model_say_the_same(self):
        gguf = self.run_json("inspect", stories())
        folder = self.run_json("inspect", stories_folder())
        sizes = ("layers", "hidden_size", "intermediate_size", "heads", "kv_heads", "head_dim",
                 "vocab_size", "context_tokens")
        self.assertEqual([gguf["model"][key] for key in sizes],
                         [folder["model"][key] for key in sizes])
        self.assertEqual(sorted(tensor["shape"] for tensor in gguf["tensors"]),
                         sorted(tensor["shape"] for tensor in folder["tensors"]))
        self.assertEqual(gguf["cache"], folder["cache"])

    def test_tensors_of_all_shards_are_shown(self):
        folder = data("models", "tiny-bf16-sharded")
        tensors = self.run_json("inspect", folder)["tensors"]
        tensor_bytes = sum(tensor["bytes"] for tensor in tensors)
        file_bytes = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        self.assertLess(0.99 * file_bytes, tensor_bytes)
        self.assertLess(tensor_bytes, file_bytes)

    def test_parameters_are_counted_and_bytes_of_each_type(self):
        result = self.run_json("inspect", data("models", "tiny-q8_0.gguf"))
        numbers, num_bytes = 0, {}
        for tensor in result["tensors"]:
            numbers += math.prod(tensor["shape"])
            num_bytes[tensor["type"]] = num_bytes.get(tensor["type"], 0) + tensor["bytes"]
        self.assertEqual(result["parameters"], {"count": numbers, "bytes_by_type": num_bytes})
        self.assertEqual(sorted(num_bytes), ["F32", "Q8_0"])

    def test_the_report_names_what_a_reader_looks_for(self):
        text = self.run_kvick("inspect", stories()).stdout.decode()
        for line in (r"GGUF v3", r"  llama\.block_count = 5", r"tensors: 47\b",
                     r"  token_embd\.weight +F32 +\[512, \d+\]", r"  bf16 +640 +327680",
                     r"parameters: \d+", r"  F32 +\d+ bytes", r"tokenizer: .*512"):
            self.assertRegex(text, rf"(?m)^{line}")

    def test_text_is_shown_as_text(self):
        text = self.run_kvick("inspect", data("models", "tiny-words.gguf")).stdout.decode()
        self.assertIn('  general.architecture = "llama"\n', text)
        self.assertIn('  tokenizer.ggml.tokens = ["<unk>", "<s>", "</s>", ', text)
        self.assertNotIn("x22", text)

    def test_numbers_that_json_has_no_words_for_are_shown_as_the_file_spells_them(self):
        folder = self.folder / "model"
        shutil.copytree(data("models", "tiny-words-hf"), folder)
        config = json.loads((folder / "config.json").read_text())
        config["attention_dropout"] = float("nan")
        config["extra"] = [float("-inf"), {"a b": float("inf"), "c": []}, "Infinity", 1.5, {}]
        (folder / "config.json").write_text(json.dumps(config))
        text = self.run_kvick("inspect", folder).stdout.decode()
        self.assertIn("  attention_dropout = NaN\n", text)
        self.assertIn('  extra = [-Infinity,{"a b":Infinity,"c":[]},"Infinity",1.5,{}]\n', text)

    def test_what_a_terminal_would_obey_is_escaped(self):
        folder = self.folder / "model"
        shutil.copytree(data("models", "tiny-words-hf"), folder)
        config = json.loads((folder / "config.json").read_text())
        config["_name_or_path"] = "Gr\u00fc\u00dfe \u4f60\u597d\u202e\u009b2J"
        (folder / "config.json").write_text(json.dumps(config, ensure_ascii=False),
                                            encoding="utf-8")
        text = self.run_kvick("inspect", folder).stdout.decode()
        self.assertIn("Gr\u00fc\u00dfe \u4f60\u597d", text)
        self.assertNotRegex(text, "[\u202e\u0080-\u009f\x1b]")

    def test_why_a_tokenizer_cannot_be_used_is_said(self):
        folder = self.folder / "model"
        shutil.copytree(data("models", "tiny-words-hf"), folder)
        (folder / "tokenizer.json").write_text("{}")
        text = self.run_kvick("inspect", folder).stdout.decode()
        self.assertRegex(text, r"(?m)^tokenizer: cannot be used: .*tokenizer\.json")

    def test_one_shard_and_a_vocabulary_alone_can_be_looked_at(self):
        shard = next(data("models", "tiny-bf16-sharded").glob("*.safetensors"))
        self.assertTrue(self.run_json("inspect", shard)["tensors"])
        vocabulary = self.run_json("inspect", shared("tokenizers", "llama-bpe.gguf"))
        self.assertEqual(vocabulary["tensors"], [])
        self.assertEqual(vocabulary["tokenizer"]["tokens"], 128256)


if __name__ == "__main__":
    kvick_cli.main()
