"""Every architecture against float64: exact logits, in both formats, and under other configs."""

import array
import json
import math
import pathlib
import shutil
import struct
import subprocess
import unittest

import kvick_cli
from kvick_cli import CliTest, isas, shared

# Of logits in high precision, with keys and values in f32.
_MAX_ERROR = {"F32": 5e-6, "BF16": 1e-4}
_OPTIONS = ("-ctk", "f32", "--precision", "high")
_CUTS = [("--chunk", "7", "--block-tokens", "16"), ("--contiguous", "--chunk", "1"), ("--no-cache",)]
# What a GGUF file does not say: of this one the window.
_VARIANT_OF_FILE = {"tiny-mistral-swa.gguf": "mistral-no-window"}


def _read(npy):
    data = npy.read_bytes() if isinstance(npy, pathlib.Path) else npy
    header_bytes = 10 + struct.unpack_from("<H", data, 8)[0]
    return array.array("f", data[header_bytes:])


def _rows(numbers, positions, width):
    rows = array.array("f")
    for position in positions:
        rows += numbers[position * width:(position + 1) * width]
    return rows


def _relative_error(got, exact):
    difference = math.fsum((a - b) ** 2 for a, b in zip(got, exact))
    return math.sqrt(difference / math.fsum(b * b for b in exact))


class ArchitecturesTest(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.models = shared("models")
        (cls.tokens,) = json.loads((cls.models / "prompt100.json").read_text()).values()
        cls.variants = json.loads((cls.models / "variants" / "variants.json").read_text())

    def check(self, model, positions, exact):
        types = {t["type"] for t in kvick_cli.inspect(model)["tensors"]}
        max_error = _MAX_ERROR["BF16" if "BF16" in types else "F32"]
        width = len(exact) // len(positions)
        got = _rows(_read(self.logits(model, self.tokens, *_OPTIONS)), positions, width)
        self.assertEqual(len(got), len(exact))
        self.assertLessEqual(_relative_error(got, exact), max_error)

    def cases(self):
        """(model, positions, exact logits)"""
        for exact in sorted(self.models.glob("*.logits.npy")):
            name = exact.name.removesuffix(".logits.npy")
            for model in (self.models / name, self.models / f"{name}.gguf"):
                variant = _VARIANT_OF_FILE.get(model.name)
                if variant:
                    yield (model, self.variants["positions"],
                           _read(self.models / "variants" / f"{variant}.npy"))
                else:
                    yield model, range(len(self.tokens)), _read(exact)

    def test_logits_in_both_formats(self):
        num_cases = 0
        for model, positions, exact in self.cases():
            with self.subTest(model=model.name):
                self.check(model, positions, exact)
                num_cases += 1
        self.assertGreater(num_cases, 0)

    def test_the_same_bits_however_cut_on_every_implementation(self):
        for model, _, _ in self.cases():
            for numerics in kvick_cli.numerics():
                found = {self.logits(model, self.tokens, "--isa", isa, *cut)
                         for isa in isas(numerics) for cut in [(), *_CUTS]}
                self.assertEqual(len(found), 1, f"{model.name}, {numerics}: bits differ")

    def test_other_configs(self):
        for variant in self.variants["variants"]:
            with self.subTest(variant=variant["name"]):
                folder = self.folder / variant["name"]
                shutil.copytree(self.models / variant["model"], folder)
                config = folder / "config.json"
                config.chmod(0o644)
                folder.chmod(0o755)
                members = json.loads(config.read_text()) | variant["set"]
                for key in variant["remove"]:
                    members.pop(key, None)
                config.write_text(json.dumps(members))
                exact = _read(self.models / "variants" / f"{variant['name']}.npy")
                self.check(folder, self.variants["positions"], exact)

    def test_every_architecture_has_golden_data(self):
        """An unknown name is answered with all the names that are known."""
        folder = self.folder / "unknown"
        shutil.copytree(self.models / "tiny-qwen2", folder)
        config = folder / "config.json"
        folder.chmod(0o755)
        config.chmod(0o644)
        members = json.loads(config.read_text())
        config.write_text(json.dumps(members | {"model_type": "?"}))
        done = subprocess.run([kvick_cli.binary(), "logits", "-m", folder, "--tokens", "1", "-o",
                               self.folder / "logits.npy"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1)
        names = set(done.stderr.split("expected ", 1)[1].split(", got", 1)[0]
                    .replace(" or ", ", ").replace('"', "").split(", "))
        tested = {json.loads((p / "config.json").read_text())["model_type"]
                  for p in self.models.iterdir() if (p / "config.json").exists()}
        tested |= {v["set"].get("model_type") for v in self.variants["variants"]}
        self.assertEqual(names - tested - _TESTED_WITH_RANDOM_WEIGHTS, set())


# By src/model, against double precision.
_TESTED_WITH_RANDOM_WEIGHTS = {"olmo2"}

if __name__ == "__main__":
    kvick_cli.main()
