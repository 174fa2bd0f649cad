"""Damaged files: a sentence and exit code 1, or a good result; no crash, no hang, little memory."""

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading

import damage
import kvick_cli
from kvick_cli import QUICK, SEED, CliTest, binary, data, inspect, stories

_NUM_DAMAGES = 12 if QUICK else 150  # to each kind of file
_TIME_LIMIT_S = 60 if QUICK else 10
_MEMORY_LIMIT_BYTES = (800 if QUICK else 100) << 20


def _run(args):
    """(exit code or -signal, stderr, most bytes resident)"""
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen([binary(), *map(str, args)], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=stderr)
        stop = threading.Timer(_TIME_LIMIT_S, process.kill)
        stop.start()
        try:
            process.stdin.write(b"Once upon")
            process.stdin.close()
        except BrokenPipeError:
            pass  # it failed before it read
        _, status, usage = os.wait4(process.pid, 0)
        stop.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        return process.returncode, stderr.read(), usage.ru_maxrss * 1024


def _small_tokenizer():
    """A tokenizer.json with 256 bytes and some merges, as the GPT-2 family writes it."""
    letters = [chr(i) for i in [*range(33, 127), *range(161, 173), *range(174, 256)]]
    letters += [chr(256 + i) for i in range(256 - len(letters))]
    merges = ["O n", "c e", "On ce", "u p", "o n", "Ġ up", "Ġup on"]
    tokens = letters + [merge.replace(" ", "") for merge in merges]
    end = {"id": len(tokens), "content": "<|end_of_text|>", "special": True, "single_word": False,
           "lstrip": False, "rstrip": False, "normalized": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": True}
    return json.dumps({"version": "1.0", "added_tokens": [end], "normalizer": None,
                       "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
                       "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)},
                                 "merges": merges}}).encode()


class HostileTest(CliTest):
    def check_verbs(self, model, what, prompt):
        cut = ("-c", 64, "-t", 1)
        for args in [("inspect", model), ("tokenize", "-m", model),
                     ("generate", "-m", model, *prompt, "-n", 3, *cut),
                     ("logits", "-m", model, "--tokens", "1,3,2", "-o", self.folder / "l.npy",
                      *cut)]:
            code, stderr, resident_bytes = _run(args)
            text = stderr.decode(errors="replace")
            context = f"{what}\nkvick {' '.join(map(str, args))}\n{text}"
            self.assertIn(code, (0, 1), context)
            if code == 1:
                self.assertRegex(text, r"\Akvick: [^\n]*[^\n.]\n\Z", context)
            self.assertLess(resident_bytes, _MEMORY_LIMIT_BYTES, context)
            self.codes[code] += 1

    def check_damages(self, model, path, damaged, prompt):
        """Damages path, of the model, again and again; damaged(rng, data) -> (what, data)."""
        data = path.read_bytes()
        self.codes = {0: 0, 1: 0}
        self.check_verbs(model, "no damage", prompt)
        self.assertGreaterEqual(self.codes[0], 3, "the undamaged files must work")
        for i in range(_NUM_DAMAGES):
            what, bad = damaged(random.Random(f"{SEED} {path.name} {i}"), data)
            path.write_bytes(bad)
            with self.subTest(file=path.name, damage=i):
                self.check_verbs(model, what, prompt)
        path.write_bytes(data)
        self.assertGreater(self.codes[1], _NUM_DAMAGES // 4, "hardly any damage was noticed")

    def copied(self, name):
        """A copy of a model folder that may be written."""
        copy = self.folder / name
        shutil.copytree(data("models", name), copy, copy_function=shutil.copyfile)
        copy.chmod(0o755)
        return copy

    def test_gguf(self):
        path = self.folder / "model.gguf"
        shutil.copyfile(stories(), path)
        tensor_bytes = sum(tensor["bytes"] for tensor in inspect(stories())["tensors"])
        header_bytes = path.stat().st_size - tensor_bytes
        self.check_damages(path, path, lambda rng, data: damage.gguf(rng, data, header_bytes),
                           ("-p", "Once upon"))

    def test_safetensors(self):
        folder = self.copied("tiny-words-hf")
        self.check_damages(folder, folder / "model.safetensors", damage.safetensors,
                           ("--tokens", "1,3"))

    def test_config_json(self):
        folder = self.copied("tiny-bf16-sharded")
        self.check_damages(folder, folder / "config.json", damage.json_text, ("--tokens", "1,3"))

    def test_index_json(self):
        folder = self.copied("tiny-bf16-sharded")
        self.check_damages(folder, folder / "model.safetensors.index.json", damage.json_text,
                           ("--tokens", "1,3"))

    def test_tokenizer_json(self):
        folder = self.copied("tiny-words-hf")
        path = folder / "tokenizer.json"
        path.write_bytes(_small_tokenizer())
        self.check_damages(folder, path, damage.json_text, ("-p", "Once upon"))

    def test_a_shard_is_missing(self):
        folder = self.copied("tiny-bf16-sharded")
        shard = sorted(folder.glob("*.safetensors"))[1]
        shard.unlink()
        sentence = self.run_failing("generate", "-m", folder, "--tokens", "1")
        self.assertRegex(sentence, re.escape(shard.name))


if __name__ == "__main__":
    kvick_cli.main()
