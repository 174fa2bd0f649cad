"""kvick logits: the file that it writes."""

import array
import ast
import os
import stat
import struct
import threading

import kvick_cli
from kvick_cli import CliTest, comma, inspect, stories


def _read_npy(data):
    """(the header's dict, the float32 values); version 1.0 only"""
    magic, header_bytes = struct.unpack_from("<8sH", data)
    assert magic == b"\x93NUMPY\x01\x00", magic
    return ast.literal_eval(data[10:10 + header_bytes].decode()), array.array(
        "f", data[10 + header_bytes:])


class LogitsTest(CliTest):
    def test_the_file_holds_every_position(self):
        vocab_size = inspect(stories())["model"]["vocab_size"]
        data = self.logits(stories(), [1, 403, 407])
        header, values = _read_npy(data)
        self.assertEqual(header, {"descr": "<f4", "fortran_order": False, "shape": (3, vocab_size)})
        self.assertEqual(len(values), 3 * vocab_size)
        self.assertEqual((len(data) - 4 * len(values)) % 64, 0, "the values are aligned")

    def test_the_largest_logit_of_a_position_is_the_greedy_token(self):
        vocab_size = inspect(stories())["model"]["vocab_size"]
        prompt = [1, 403, 407, 261, 378]
        result = self.run_json("generate", "-m", stories(), "--tokens", comma(prompt), "-n", 20)
        _, values = _read_npy(self.logits(stories(), prompt + result["tokens"]))
        rows = [values[i:i + vocab_size] for i in range(0, len(values), vocab_size)]
        best = [max(range(vocab_size), key=row.__getitem__) for row in rows]
        self.assertEqual(best[len(prompt) - 1:-1], result["tokens"])

    def test_json_says_what_was_written(self):
        path = self.folder / "l.npy"
        result = self.run_json("logits", "-m", stories(), "--tokens", "1,2,3", "-o", path)
        self.assertEqual(result["output"], str(path))
        self.assertEqual(result["shape"], [3, inspect(stories())["model"]["vocab_size"]])
        self.assertIn(result["isa"], kvick_cli.isas())
        self.assertRegex(result["numerics"], r"^(canonical|tiles)-\d+$")

    def test_a_failure_leaves_the_old_file_and_no_other(self):
        path = self.folder / "l.npy"
        path.write_bytes(b"old")
        self.run_failing("logits", "-m", stories(), "--tokens", "1,99999", "-o", path)
        self.assertEqual(path.read_bytes(), b"old")
        self.assertEqual(list(self.folder.iterdir()), [path])

    def test_stdout_gets_the_file_and_nothing_else(self):
        for name in ("-", "/dev/stdout"):
            done = self.run_kvick("logits", "-m", stories(), "--tokens", "1,403", "-o", name)
            self.assertEqual(done.stdout[:len(self.logits(stories(), [1, 403]))],
                             self.logits(stories(), [1, 403]))
        self.assertEqual(self.run_kvick("logits", "-m", stories(), "--tokens", "1,403", "-o",
                                        "-").stdout, self.logits(stories(), [1, 403]))

    def test_an_output_that_cannot_be_written_is_found_before_the_model(self):
        for path in ("no/such/folder/l.npy", self.folder):
            self.assertRegex(self.run_failing("logits", "no.gguf", "--tokens", "1", "-o", path),
                             "cannot write")

    def test_ids_from_a_file(self):
        ids = self.folder / "ids.txt"
        ids.write_text("1 403\n")
        output = self.folder / "l.npy"
        self.run_kvick("logits", "-m", stories(), "--tokens", f"@{ids}", "-o", output)
        written = output.read_bytes()
        self.assertEqual(written, self.logits(stories(), [1, 403]))

    def test_a_pipe_is_written_to_and_not_replaced(self):
        wanted = self.logits(stories(), [1, 403])
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        read = []
        # Open to write too: the reader waits for no one, and sees the end once that is closed.
        reading, writing = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), os.open(pipe, os.O_WRONLY)
        os.set_blocking(reading, True)

        def drain():
            while part := os.read(reading, 1 << 16):
                read.append(part)
        reader = threading.Thread(target=drain)
        reader.start()
        try:
            self.run_kvick("logits", "-m", stories(), "--tokens", "1,403", "-o", pipe)
        finally:
            os.close(writing)
            reader.join()
            os.close(reading)
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode), "the pipe was replaced")
        self.assertEqual(b"".join(read), wanted)


if __name__ == "__main__":
    kvick_cli.main()
