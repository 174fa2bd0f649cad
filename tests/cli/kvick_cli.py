"""What the tests of the command line share: the program, the data, and a test case that runs it.

Environment
  KVICK_BINARY       the program under test, or a script that runs it in an emulator
  KVICK_TEST_MODELS  a folder of more test models; else shared/models beside the repository or above
  KVICK_TEST_QUICK   fewer and shorter cases, and room for what sanitizers cost
  KVICK_TEST_SEED    of everything drawn at random
"""

import functools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

QUICK = bool(os.environ.get("KVICK_TEST_QUICK"))
SEED = int(os.environ.get("KVICK_TEST_SEED", "1"))
_TESTS = pathlib.Path(__file__).resolve().parents[1]
_EXIT_SKIPPED = 77
_TIME_LIMIT_S = 120


def binary():
    return os.environ["KVICK_BINARY"]


def data(*parts):
    """A path in tests/data, which is a part of the repository."""
    return _TESTS.joinpath("data", *parts)


def shared(*parts):
    """A path in data that a checkout may have in addition; skips the test where it is absent."""
    for folder in _shared_folders():
        path = folder.joinpath(*parts)
        if path.exists():
            return path
    raise unittest.SkipTest(f"{'/'.join(parts)} is absent: set KVICK_TEST_MODELS to run this test")


def _shared_folders():
    given = os.environ.get("KVICK_TEST_MODELS")
    if given:
        return [pathlib.Path(given).parent]
    return [parent / "shared" for parent in _TESTS.parents]


@functools.cache
def models():
    """The files and folders of tests/data/models, then those of shared/models that kvick runs."""
    found = _models_in(data("models"))
    for folder in _shared_folders():
        if (folder / "models").is_dir():
            found += [model for model in _models_in(folder / "models") if _runs(model)]
    return found


def llamas():
    """Those of models() that have no file of exact logits, which architectures_test.py reads."""
    return [model for model in models()
            if not model.with_name(f"{model.stem}.logits.npy").exists()]


def _models_in(folder):
    return sorted(p for p in folder.iterdir()
                  if p.suffix == ".gguf" or (p / "config.json").exists())


def _runs(model):
    """Models of architectures that kvick does not support are left out, with a message."""
    done = subprocess.run([binary(), "generate", "-m", model, "--tokens", "1", "-n", "1"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"left out: {done.stderr.strip()}", file=sys.stderr)
    return done.returncode == 0


# llama.cpp's converter writes no window of a Mistral.
_UNLIKE_THEIR_FOLDERS = ["tiny-mistral-swa.gguf"]


@functools.cache
def quantized_models():
    """The files of shared/quant, one for each format of quantized weights; none where it is absent."""
    folders = [folder / "quant" for folder in _shared_folders()]
    return [model for folder in folders for model in sorted(folder.glob("*.gguf"))]


def golden_of(model):
    """The file of greedy continuations that belongs to a model, or None."""
    if model.name in _UNLIKE_THEIR_FOLDERS:
        return None
    name = model.stem.removesuffix("-hf")
    folders = [p for p in (model.with_name(name), model.with_name(f"{name}-hf")) if p.is_dir()]
    golden = model.with_name(f"{name}.greedy.json")
    return golden if golden.exists() and set(folders) <= set(models()) else None


def stories():
    """A small model with a tokenizer: a trained one if the checkout has it, else a random one."""
    try:
        return shared("models", "stories260K.gguf")
    except unittest.SkipTest:
        return data("models", "tiny-words.gguf")


def stories_folder():
    """The same weights as a Hugging Face folder, without a tokenizer."""
    return stories().with_name(f"{stories().stem}-hf")


@functools.cache
def _numerics_by_isa():
    lines = subprocess.run([binary(), "--version"], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    known = [line.replace("*", " ").split()[:2] for line in lines
             if line.startswith("  ") and "not on this machine" not in line
             and not line.startswith("  * is")]
    if not known:
        raise RuntimeError("kvick --version lists no implementation")
    return dict(known)


def isas(numerics=None):
    """The implementations that `kvick --version` says this machine has; all, or those of "canonical"
    or "tiles"."""
    return [isa for isa, order in _numerics_by_isa().items() if numerics in (None, order)]


def numerics():
    """Those that this machine can compute, "canonical" first."""
    return sorted(set(_numerics_by_isa().values()))


@functools.cache
def inspect(model):
    text = subprocess.run([binary(), "inspect", model, "--json"], capture_output=True,
                          check=True).stdout
    return json.loads(text)


def random_tokens(model, num_tokens, seed):
    vocab_size = inspect(model)["model"]["vocab_size"]
    rng = random.Random(f"{SEED} {seed}")
    return [rng.randrange(vocab_size) for _ in range(num_tokens)]


def comma(tokens):
    return ",".join(map(str, tokens))


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvick-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_kvick(self, *args, exit_code=0, stdin=b"", **popen):
        """Runs it to the end; the outputs are bytes."""
        command = [binary(), *map(str, args)]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=_TIME_LIMIT_S,
                              check=False, **popen)
        self.assertEqual(done.returncode, exit_code,
                         f"{command}\n{done.stderr.decode(errors='replace')}")
        return done

    def run_json(self, *args, **options):
        """With --json; stdout is checked to be one JSON object on one line."""
        text = self.run_kvick(*args, "--json", **options).stdout.decode()
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.endswith("\n"), text)
        value = json.loads(text)
        self.assertIsInstance(value, dict)
        return value

    def run_failing(self, *args, **options):
        """Fails with exit code 1, the one sentence on stderr is returned, and stdout is empty."""
        done = self.run_kvick(*args, exit_code=1, **options)
        self.assertEqual(done.stdout, b"")
        return self.sentence(done.stderr)

    def sentence(self, stderr):
        """Checks that it is one sentence of the program's, and returns it."""
        text = stderr.decode()
        self.assertRegex(text, r"\Akvick: [^\n]+\n\Z")
        return text[len("kvick: "):-1]

    def logits(self, model, tokens, *options):
        """The .npy file's bytes."""
        path = self.folder / "logits.npy"
        path.unlink(missing_ok=True)
        self.run_kvick("logits", "-m", model, "--tokens", comma(tokens), "-o", path, *options)
        return path.read_bytes()


def main():
    """Runs the tests of the calling file; exit code 77 says that all of them were skipped."""
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not result.wasSuccessful():
        print(f"KVICK_TEST_SEED={SEED}", file=sys.stderr)
        sys.exit(1)
    sys.exit(_EXIT_SKIPPED if len(result.skipped) >= result.testsRun else 0)
