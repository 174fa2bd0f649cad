"""Commands with small files that other engines once read wrongly, and the output that is right.

../data/cases/cases.jsonl has one case per line:

  id                  a name; the files of the case are in the folder of this name
  what                what the case is about
  command             a command for bash; {K} is kvick, {OUT} an empty folder
  expected            the checks below; "any": a list of such objects, of which one must hold
  source_of_expected  where the expected output comes from
"""

import ast
import json
import struct
import subprocess

import kvick_cli
from kvick_cli import CliTest, binary, data

_TIME_LIMIT_S = 120


def _cases():
    for line in data("cases", "cases.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _read_npy(path):
    """The rows of a float32 array with two dimensions."""
    content = path.read_bytes()
    (header_bytes,) = struct.unpack_from("<H", content, 8)
    rows, columns = ast.literal_eval(content[10:10 + header_bytes].decode("latin1"))["shape"]
    values = struct.unpack_from(f"<{rows * columns}f", content, 10 + header_bytes)
    return [values[i * columns:(i + 1) * columns] for i in range(rows)]


class CasesTest(CliTest):
    def run_case(self, case):
        """Runs the command in the folder of the cases. Its {OUT} is self.out."""
        self.out = self.folder / case["id"]
        self.out.mkdir()
        command = case["command"].replace("{K}", binary()).replace("{OUT}", str(self.out))
        return subprocess.run(["bash", "-c", command], cwd=data("cases"), capture_output=True,
                              check=False, timeout=_TIME_LIMIT_S)

    def check(self, expected, done):
        if "any" in expected:
            self.check_any(expected["any"], done)
            return
        for name, value in expected.items():
            getattr(self, f"check_{name}")(value, done)

    def check_any(self, alternatives, done):
        failures = []
        for expected in alternatives:
            try:
                self.check(expected, done)
                return
            except AssertionError as failure:
                failures.append(str(failure))
        self.fail("\n".join(failures))

    def check_exit(self, code, done):
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))

    def check_stderr_has(self, patterns, done):
        for pattern in patterns:
            self.assertRegex(done.stderr.decode(errors="replace"), pattern)

    def check_stdout_has(self, patterns, done):
        for pattern in patterns:
            self.assertRegex(done.stdout.decode(errors="replace"), pattern)

    def check_stdout_lacks(self, patterns, done):
        for pattern in patterns:
            self.assertNotRegex(done.stdout.decode(errors="replace"), pattern)

    def check_ids(self, ids, done):
        self.check_exit(0, done)
        self.assertEqual(_json_lines(done.stdout.decode()), ids)

    def check_texts(self, texts, done):
        self.check_exit(0, done)
        self.assertEqual([line["text"] for line in _json_lines(done.stdout.decode())], texts)

    def check_count(self, num_ids, done):
        self.check_exit(0, done)
        self.assertEqual(len(_json_lines(done.stdout.decode())[0]), num_ids)

    def check_json(self, members, done):
        got = json.loads(done.stdout)
        self.assertEqual({name: got.get(name) for name in members}, members)

    def check_results(self, results, done):
        """Members of each line of `kvick batch`; n_tokens is the number of new tokens."""
        lines = _json_lines(done.stdout.decode())
        self.assertEqual(len(lines), len(results))
        for got, members in zip(lines, results):
            got["n_tokens"] = len(got.get("tokens", []))
            self.assertEqual({name: got.get(name) for name in members}, members, got)

    def check_npy_scaled(self, value, done):
        """The second file is the first one times a factor, bit for bit."""
        first, second, factor = value
        self.check_exit(0, done)
        scaled = [[factor * x for x in row] for row in _read_npy(self.out / first)]
        self.assertEqual([list(row) for row in _read_npy(self.out / second)], scaled)

    def check_npy_near(self, value, done):
        """The last rows of a file are within a tolerance of these."""
        name, rows, tolerance = value
        self.check_exit(0, done)
        for got, row in zip(_read_npy(self.out / name)[-len(rows):], rows, strict=True):
            for x, y in zip(got, row, strict=True):
                self.assertAlmostEqual(x, y, delta=tolerance)

    def test_every_case(self):
        ids = set()
        for case in _cases():
            ids.add(case["id"])
            with self.subTest(id=case["id"], what=case["what"]):
                self.check(case["expected"], self.run_case(case))
        self.assertGreater(len(ids), 50)

    def test_a_check_that_does_not_hold_fails(self):
        """The checks themselves: a command whose output is known, and something else expected."""
        known = {"id": "known", "command": "echo '[1, 2]'; echo problem >&2; exit 1"}
        done = self.run_case(known)
        self.check({"exit": 1, "stderr_has": ["prob"], "stdout_has": [r"\[1"]}, done)
        self.check({"any": [{"exit": 0}, {"exit": 1}]}, done)
        for expected in ({"exit": 0}, {"stderr_has": ["x"]}, {"stdout_has": ["x"]},
                         {"stdout_lacks": ["1"]}, {"ids": [[1, 2]]}, {"count": 2},
                         {"any": [{"exit": 0}, {"exit": 2}]}):
            with self.subTest(expected=expected), self.assertRaises(AssertionError):
                self.check(expected, done)


if __name__ == "__main__":
    kvick_cli.main()
