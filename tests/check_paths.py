#!/usr/bin/env python3
"""Checks that no file names an absolute path of one machine.

    check_paths.py [ROOT]         the tree; exit code 1 if a file names such a path
    check_paths.py --self-test    this check, on small trees with one violation each
"""

import re

import source_tree
from source_tree import Violation

PRIVATE_PATH = re.compile(r"(?<![\w.~-])/(?:work|home|root|Users)/\w")


def check(root):
    found = []
    at_root = sorted(path.relative_to(root) for path in root.iterdir()
                     if path.is_file() and path.name != ".git")
    for path in at_root + source_tree.files_below(root, source_tree.FOLDERS, set()):
        text = (root / path).read_bytes().decode(errors="replace")
        for i, line in enumerate(text.split("\n")):
            if PRIVATE_PATH.search(line):
                found.append(Violation(path, i + 1, "an absolute path of one machine"))
    return found


HOME = "/" + "home/someone"
CLEAN = {
    "README.md": "See https://example.org" + HOME + " and ../shared/models.\n",
    ".git": f"gitdir: {HOME}\n",  # of a second working tree
}
PLANTED = {
    "at the root": ({"README.md": f"\nsee {HOME}\n"}, "README.md:2: an absolute path"),
    "in a string": ({"src/base/a.cc": f'"{HOME}"\n'}, "src/base/a.cc:1: an absolute path"),
    "in a hidden folder": ({".ci/run": f"cd {HOME}\n"}, ".ci/run:1: an absolute path"),
}

if __name__ == "__main__":
    source_tree.main(check, CLEAN, PLANTED)
