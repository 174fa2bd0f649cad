#!/usr/bin/env python3
"""Checks that code, help and documentation use the words of the field, not old words of this project.

    check_words.py [ROOT]         the tree; exit code 1 if a file has an old word
    check_words.py --self-test    this check, on small trees with one violation each
"""

import re

import source_tree
from source_tree import Violation

# Old word: the one to write instead. The tests may quote any of them.
WORDS = {
    r"(?:is|are) wanted\b": "expected ..., got ...",
    r"(?:is|are) possible\b": "expected ..., got ...",
    r"steps? aside\b": "is preempted",
    r"put aside\b": "is preempted",
    r"to be had\b": "cannot create ..., or expected ...",
    r"kMost[A-Z]\w*": "kMax...",
    r"\bmost_running\b": "max_running",
    r"\btenants?\b": "cache_salt",
    r"\bignore_end\b": "ignore_eos",
    r"\bend_ids\b": "eos_ids",
    r"\bstop texts?\b": "stop string",
    r"\bRunnerSlice\b": "SequenceChunk",
    r"\bmax_slices\b": "max_sequences",
}
OLD = re.compile("|".join(WORDS), re.IGNORECASE)
FOLDERS = ["apps", "docs", "include", "src"]
SUFFIXES = {".cc", ".h", ".html", ".md", ".svg", ".txt"}
TEST = re.compile(r"_test(ing|_util)?$")


def advice(word):
    return next(better for old, better in WORDS.items() if re.fullmatch(old, word, re.IGNORECASE))


def check(root):
    found = []
    at_root = sorted(path.relative_to(root) for path in root.glob("*.md"))
    for path in at_root + source_tree.files_below(root, FOLDERS, SUFFIXES):
        if TEST.search(path.stem):
            continue
        for i, line in enumerate((root / path).read_text(errors="replace").split("\n")):
            found += [Violation(path, i + 1, f'expected "{advice(old)}", got "{old}"')
                      for old in OLD.findall(line)]
    return found


CLEAN = {
    "README.md": "The youngest sequence is preempted. It wanted to be possible.\n",
    "src/engine/a.h": "constexpr int kMaxTokens = 1;  // expected 1 to 2, got 3; kMost of them\n",
    "src/engine/a_test.cc": "// the tenant steps aside\n",
}
PLANTED = {
    "in a message": ({"apps/kvick/a.cc": '\n"a number is wanted"\n'},
                     'a.cc:2: expected "expected ..., got ...", got "is wanted"'),
    "in a comment": ({"src/engine/a.h": "// The youngest steps aside.\n"},
                     'a.h:1: expected "is preempted", got "steps aside"'),
    "in a name": ({"include/kvick/a.h": "int kMostTokens;\n"},
                  'a.h:1: expected "kMax...", got "kMostTokens"'),
    "at the root": ({"README.md": "A Tenant finds\n"}, 'README.md:1: expected "cache_salt", got "Tenant"'),
    "the second of a line": ({"docs/a.md": "stop texts, end_ids\n"}, 'got "end_ids"'),
}

if __name__ == "__main__":
    source_tree.main(check, CLEAN, PLANTED)
