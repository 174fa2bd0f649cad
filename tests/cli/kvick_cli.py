"""What the tests of the command line share: the program, the data, and a test case that runs it.

Environment
  KVICK_BINARY       the program under test
  KVICK_TEST_MODELS  the folder of test models; else shared/models beside the repository or above
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
_EXIT_SKIPPED = 77
_TIME_LIMIT_S = 120


def binary():
    return os.environ["KVICK_BINARY"]


def shared(*parts):
    """A path in the shared test data; skips the test where it is absent."""
    models = os.environ.get("KVICK_TEST_MODELS")
    above = pathlib.Path(__file__).resolve().parents
    folders = [pathlib.Path(models).parent] if models else [p / "shared" for p in above]
    for folder in folders:
        path = folder.joinpath(*parts)
        if path.exists():
            return path
    wanted = "/".join(parts)
    raise unittest.SkipTest(
        f"no {wanted}: set KVICK_TEST_MODELS, or put the test data into ../shared")


def models():
    """The files and folders of the test models."""
    folder = shared("models")
    return sorted(p for p in folder.iterdir() if p.is_dir() or p.suffix == ".gguf")


def stories():
    """A small trained model with a tokenizer."""
    return shared("models", "stories260K.gguf")


@functools.cache
def isas():
    """The implementations that `kvick --version` says this machine has."""
    lines = subprocess.run([binary(), "--version"], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    names = [line.replace("*", " ").split()[0] for line in lines
             if line.startswith("  ") and "not on this machine" not in line
             and not line.startswith("  * is")]
    if not names:
        raise RuntimeError("kvick --version lists no implementation")
    return names


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
