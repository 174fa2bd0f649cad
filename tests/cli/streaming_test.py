"""What goes through stdout: characters whole, tokens at once, and what happens if nobody reads."""

import pathlib
import signal
import socket
import subprocess

import kvick_cli
from kvick_cli import CliTest, binary, stories

_PROMPT = "Once upon a time"


def _writes(*args):
    """Every write to stdout on its own: a socket of packets keeps them apart."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, subprocess.Popen([binary(), *map(str, args)], stdin=subprocess.DEVNULL,
                                stdout=theirs) as process:
        theirs.close()
        packets = list(iter(lambda: ours.recv(1 << 20), b""))
    return packets, process.returncode


class StreamingTest(CliTest):
    def test_no_character_is_ever_split(self):
        """A hot temperature draws byte tokens; some that follow each other make a character."""
        control = self.run_json("tokenize", "-m", stories(), "--no-special", stdin=b"\x07")
        self.first_byte_token = control["tokens"][-1] - 7  # byte tokens stand in order
        num_joined = 0
        for seed in range(30):
            options = ("-m", stories(), "-p", _PROMPT, "-n", 120, "--temp", 20, "--seed", seed,
                       "--ignore-eos")
            writes, code = _writes("generate", *options)
            self.assertEqual(code, 0)
            for write in writes:
                with self.subTest(seed=seed, write=write):
                    write.decode()  # raises where a character is split
            result = self.run_json("generate", *options)
            self.assertEqual(b"".join(writes).decode(), _PROMPT + result["text"] + "\n")
            num_joined += self.num_joined(result)
        self.assertGreater(num_joined, 0, "no character was made of several tokens")

    def num_joined(self, result):
        """Characters made of a lead byte and a continuation byte, two tokens of this vocabulary."""
        values = [token - self.first_byte_token for token in result["tokens"]]
        return sum(0xC2 <= a <= 0xDF and 0x80 <= b <= 0xBF for a, b in zip(values, values[1:]))

    def test_each_token_is_written_at_once(self):
        writes, _ = _writes("generate", "-p", _PROMPT, "-n", 50)
        self.assertEqual(writes[0].decode(), _PROMPT)
        self.assertEqual(len(writes), 1 + 50 + 1, "prompt, tokens, end of line")

    def test_a_reader_that_goes_away_ends_it(self):
        for args in [("generate", "-m", stories(), "-p", _PROMPT, "-n", 400, "--ignore-eos"),
                     ("inspect", stories(), "--json"), ("tokenize", "-m", stories(), "--jsonl")]:
            with self.subTest(args=args):
                with subprocess.Popen([binary(), *map(str, args)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                    process.stdout.close()
                    try:
                        process.communicate(b'{"text": "a"}\n' * 10000, timeout=60)
                    except ValueError:
                        pass  # communicate() on the closed pipe
                self.assertIn(process.returncode, (0, 1, -signal.SIGPIPE))

    def test_a_full_disk_is_an_error(self):
        full = pathlib.Path("/dev/full")
        if not full.is_char_device():
            self.skipTest("no /dev/full")
        line = b'{"text": "a"}\n'
        for args in [("generate", "-m", stories(), "-p", _PROMPT, "-n", 4),
                     ("generate", "-m", stories(), "-p", _PROMPT, "-n", 4, "--json"),
                     ("tokenize", "-m", stories(), "--jsonl"), ("tokenize", "-m", stories()),
                     ("inspect", stories()), ("inspect", stories(), "--json")]:
            with self.subTest(args=args), full.open("wb") as stdout:
                done = subprocess.run([binary(), *map(str, args)], input=line, stdout=stdout,
                                      stderr=subprocess.PIPE, check=False, timeout=60)
                self.assertEqual(done.returncode, 1)
                self.sentence(done.stderr)


if __name__ == "__main__":
    kvick_cli.main()
