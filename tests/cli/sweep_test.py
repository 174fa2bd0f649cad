"""Command lines that nobody means: each ends soon, with one sentence and a documented exit code."""

import itertools
import os
import pty
import shlex
import subprocess
import time
import unittest

import kvick_cli
from kvick_cli import QUICK, CliTest, binary, stories

_NUMBERS = ["0", "-1", "1", "-9223372036854775808", "9223372036854775807", "9" * 40, "1e9", "nan",
            "-nan", "inf", "0x7f", "1.5", "", " ", "x", "\u0661", "1\n2", "--", "-"]
_TINY = ("--seconds", "0", "--working-set", "1MiB", "-t", "1")
# A command that ends at once, and its options that take numbers.
_OPTIONS = {
    ("generate", stories(), "-p", "a", "-n", "1", "-t", "1"):
        ["-c", "--block-tokens", "-t", "--chunk", "-n", "--temp", "--top-k", "--top-p", "--min-p",
         "-s", "--repeat-penalty"],
    ("batch", "-m", stories(), "-i", "/dev/null", "-o", "-", "-t", "1"):
        ["-c", "--block-tokens", "-t", "--cache-memory", "--batch-tokens", "--max-sequences"],
    ("plan", "llama-3-8b"): ["-c", "--requests", "--mean-tokens", "--block-tokens", "--memory"],
    ("logits", stories(), "--tokens", "1", "-o", "/dev/null", "-t", "1"):
        ["-c", "--block-tokens", "-t", "--chunk"],
    ("bench", "limits", *_TINY): ["--seconds", "-t", "--working-set"],
}
_PATHS = ["", ".", "/", "no/such/file", "/dev/null", "/dev/full", "a" * 5000, "/proc/self/mem",
          "\n", "\x1b[2J", "~", "-"]
# Commands with a path in the place of {}.
_WITH_PATH = [
    ("generate", "-m", "{}", "-p", "a"), ("generate", "{}", "-p", "a"),
    ("generate", stories(), "-f", "{}", "-n", "1"),
    ("generate", stories(), "--tokens", "@{}", "-n", "1"), ("batch", "-i", "{}", "-o", "-"),
    ("batch", "-i", "/dev/null", "-o", "{}"), ("batch", "-m", "{}", "-i", "/dev/null", "-o", "-"),
    ("logits", "{}", "--tokens", "1", "-o", "/dev/null"), ("plan", "{}"), ("inspect", "{}"),
    ("logits", stories(), "--tokens", "1", "-o", "{}"), ("tokenize", "-m", "{}"),
    ("tokenize", "-f", "{}"), ("prove", "{}"), ("prove", "no.gguf", "--report", "{}"),
    ("bench", "serving", "--trace", "{}"),
]


class SweepTest(CliTest):
    def check(self, command, **options):
        """Runs it in a folder of its own."""
        with self.subTest(command=command):
            done = subprocess.run([binary(), *map(str, command)], input=b"", capture_output=True,
                                  timeout=60, check=False, cwd=self.folder, **options)
            self.assertIn(done.returncode, (0, 1, 2), done.stderr)
            for line in done.stderr.splitlines():
                self.assertRegex(line, rb"\Akvick: [^\x00-\x1f]+\Z")
            if done.returncode != 0:
                self.assertTrue(done.stderr)
                self.assertNotRegex(done.stderr.decode(), r"std::|bad_|terminate|what\(\)")
            return done.returncode

    def test_numbers(self):
        for command, options in _OPTIONS.items():
            for option, number in itertools.product(options, _NUMBERS[:6] if QUICK else _NUMBERS):
                code = self.check((*command, option, number))
                if number in ("nan", "x", ""):
                    self.assertEqual(code, 2, (command, option, number))

    def test_paths(self):
        for command, path in itertools.product(_WITH_PATH, _PATHS):
            self.check([str(part).replace("{}", path) for part in command])

    @unittest.skipIf(os.geteuid() == 0, "root reads every file")
    def test_files_that_may_not_be_read(self):
        path = self.folder / "closed"
        path.write_bytes(b"a")
        path.chmod(0)
        for command in _WITH_PATH:
            self.assertEqual(self.check([str(part).replace("{}", str(path)) for part in command]), 1)

    @unittest.skipIf(QUICK, "sanitizers need the address space")
    def test_endless_files(self):
        for command in [("generate", stories(), "-f", "/dev/zero"),
                        ("generate", stories(), "--tokens", "@/dev/zero"),
                        ("tokenize", "-m", stories(), "-f", "/dev/zero"),
                        ("bench", "serving", "--trace", "/dev/zero")]:
            self.assertEqual(self.check(command), 1)

    def test_streams_that_take_nothing(self):
        commands = [("generate", stories(), "-p", "a", "-n", "2"), ("plan", "llama-3-8b"),
                    ("inspect", stories()), ("tokenize", "a"), ("--help",), ("--version",),
                    ("logits", stories(), "--tokens", "1", "-o", "-"),
                    ("bench", "limits", *_TINY)]
        for command, where in itertools.product(commands, (">/dev/full", ">&-")):
            with self.subTest(command=command, where=where):
                line = shlex.join([binary(), *map(str, command)]) + " " + where
                done = subprocess.run(line, shell=True, capture_output=True, check=False,
                                      timeout=60)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(self.sentence(done.stderr.splitlines(keepends=True)[-1]),
                                 "stdout: cannot write")

    def test_stdout_comes_before_what_is_said_about_it(self):
        """Into one file, as into one terminal."""
        for command, last in [
                (("generate", stories(), "-p", "a", "-c", "8", "-n", "20", "--ignore-eos"),
                 "context of 8 tokens is full"),
                (("generate", stories(), "-p", "a", "-c", "8", "-n", "20", "--ignore-eos", "--json"),
                 "context of 8 tokens is full"),
                (("tokenize", "-m", stories(), "--jsonl"), "line 2")]:
            with self.subTest(command=command):
                done = subprocess.run([binary(), *map(str, command)], input=b'{"text": "a"}\nx\n',
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                      check=False)
                lines = done.stdout.decode(errors="replace").splitlines()
                self.assertGreater(len(lines), 1)
                self.assertRegex(lines[-1], last)


class TerminalTest(CliTest):
    """What goes to a terminal."""

    def shown(self, command, seconds, **environment):
        """What it prints to a terminal, while its stdin stays open for so long."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([binary(), *map(str, command)], stdin=subprocess.PIPE, stdout=theirs,
                              stderr=theirs, env={**os.environ, **environment}) as process:
            os.close(theirs)
            time.sleep(seconds)
            process.stdin.close()
            shown = b""
            try:
                while part := os.read(ours, 1 << 16):
                    shown += part
            except OSError:  # the other end is closed
                pass
            self.assertIn(process.wait(600), (0, 1))
        os.close(ours)
        return shown

    def test_a_status_line_only_where_it_can_be_erased(self):
        output = self.folder / "results.jsonl"
        command = ("batch", "-m", stories(), "-i", "-", "-o", output)
        self.assertIn(b"\x1b[K", self.shown(command, 4, TERM="xterm"))
        self.assertNotIn(b"\x1b", self.shown(command, 2, TERM="dumb"))

    @unittest.skipIf(QUICK, "a proof takes minutes under sanitizers")
    def test_no_color(self):
        command = ("prove", "-n", "2")
        self.assertNotIn(b"\x1b[1m", self.shown(command, 0, TERM="xterm", NO_COLOR="1"))


if __name__ == "__main__":
    kvick_cli.main()
