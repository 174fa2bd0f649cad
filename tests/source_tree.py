"""What the checks of the source tree share: the list of files, C++ without comments, the report."""

import dataclasses
import os
import re
import sys
import tempfile
from pathlib import Path

FOLDERS = [".ci", "apps", "bench", "cmake", "docs", "examples", "fuzz", "include", "src", "tests", "tools"]
CPP_FOLDERS = ["apps", "bench", "examples", "fuzz", "include", "src", "tests"]


@dataclasses.dataclass(frozen=True)
class Violation:
    path: Path  # relative to the root
    line: int  # from 1
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


def files_below(root, folders, suffixes):
    """Paths relative to the root, sorted. An empty `suffixes` takes every file."""
    found = []
    for folder in folders:
        for place, subfolders, names in os.walk(root / folder):
            subfolders[:] = [name for name in subfolders if name != "__pycache__"]
            found += [Path(place, name).relative_to(root) for name in names]
    return sorted(path for path in found if not suffixes or path.suffix in suffixes)


_TOKEN = re.compile(
    r"""
    (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
  | (?P<string> (?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+' )
    """,
    re.VERBOSE | re.DOTALL,
)


def _spaces(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """C++ with comments as spaces: lines and columns stay."""
    return _TOKEN.sub(lambda m: _spaces(m[0]) if m["comment"] else m[0], text)


def without_comments_and_strings(text):
    return _TOKEN.sub(lambda m: _spaces(m[0]), text)


def write_files(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def self_test(check, clean, planted):
    """Runs `check` on a clean tree, then once for each planted change: {name: (files, expected)}.

    Each must give a violation that contains `expected`, and the clean tree none at all.
    """
    failures = []
    for name, (files, expected) in {"clean": ({}, None), **planted}.items():
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), {**clean, **files})
            found = [str(violation) for violation in check(Path(folder))]
        as_expected = any(expected in line for line in found) if expected else not found
        if not as_expected:
            failures.append(f"{name}: expected {expected or 'nothing'}, got {found or 'nothing'}")
    return failures


def main(check, clean, planted):
    """The command line of a check: --self-test, or the root of the tree."""
    if sys.argv[1:] == ["--self-test"]:
        found = self_test(check, clean, planted)
        summary = f"{len(planted) + 1} trees, {len(found)} not judged as expected"
    else:
        root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
        found = check(root)
        summary = f"{len(found)} violations"
    for line in found:
        print(line)
    print(summary)
    sys.exit(1 if found else 0)
