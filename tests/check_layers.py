#!/usr/bin/env python3
"""Checks which layer includes and links which: only the arrows of CONTRIBUTING.md are allowed.

    check_layers.py [ROOT]         the tree; exit code 1 if a line of it is at odds with the arrows
    check_layers.py --self-test    this check, on small trees with one violation each
"""

import re
from pathlib import Path

import source_tree
from source_tree import Violation

ARROWS = {
    "base": set(),
    "cache": {"base"},
    "attention": {"cache", "base"},
    "quant": {"base"},
    "measure": {"quant", "base"},
    "ops": {"quant", "base"},
    "formats": {"quant", "base"},
    "model": {"attention", "ops", "cache", "formats", "quant", "base"},
    "engine": {"model", "cache", "formats", "ops", "base"},
    "prove": {"engine", "model", "attention", "cache", "formats", "ops", "measure", "quant", "base"},
}
PUBLIC_HEADERS = {
    "status": "base",
    "exec": "base",
    "tensor": "base",
    "kv_layout": "cache",
    "kv_cache": "cache",
    "attention": "attention",
    "model": "model",
    "engine": "engine",
}
TOP_FOLDERS = {"apps", "bench", "examples", "fuzz", "tests"}  # may include any layer; nobody includes them

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
TEST_FILE = re.compile(r"(^|_)test(ing|_util)?$")


def is_public(path):
    return path.parts[:2] == ("include", "kvick")


def layer_of(path):
    """The layer of a file; None if it is above all layers, "" if this check does not know it."""
    if is_public(path):
        return PUBLIC_HEADERS.get(path.stem, "")
    if path.parts[0] == "src":
        return path.parts[1] if path.parts[1] in ARROWS else ""
    return None


def layer_of_include(name):
    """The layer of an included header; None if it is not part of kvick."""
    first, _, rest = name.partition("/")
    if first == "kvick" and rest:
        return PUBLIC_HEADERS.get(Path(rest).stem)
    return first if rest and first in ARROWS else None


def includes_of(text):
    """(line, quote, name) of each #include."""
    for match in INCLUDE.finditer(source_tree.without_comments(text)):
        yield text.count("\n", 0, match.start(2)) + 1, match[1], match[2]


def check_include(path, quote, name):
    """What is wrong with one #include, or None."""
    if ".." in Path(name).parts:
        return f"{name} is included by a relative path"
    if name.split("/")[0] in TOP_FOLDERS | {"src", "include"}:
        return f"{name} is included from outside of the include paths"
    if is_public(path):
        is_allowed = name.startswith(("kvick/", "tl/")) or not re.search(r"[/.]", name)
        if not is_allowed:
            return f"a public header may include kvick/, tl/ and std, got {name}"
    own, other = layer_of(path), layer_of_include(name)
    if not own:
        return None
    if other and other != own and other not in ARROWS[own]:
        return f"{own} includes {name} of {other}"
    if TEST_FILE.search(Path(name).stem) and not TEST_FILE.search(path.stem):
        return f"the library includes {name} of the tests"
    if other is None and quote == '"' and not name.startswith("hwy/"):
        return f"{name} is in quotes and not a path below src/ or include/"
    return None


def check_includes(root, paths):
    found = []
    for path in paths:
        if layer_of(path) == "":
            found.append(Violation(path, 1, "the file's layer is not in check_layers.py"))
        for line, quote, name in includes_of((root / path).read_text()):
            wrong = check_include(path, quote, name)
            if wrong:
                found.append(Violation(path, line, wrong))
    return found


def guard_of(path):
    below = {"include": 2, "src": 1}.get(path.parts[0], 0)
    return "KVICK_" + re.sub(r"[^A-Z0-9]", "_", "/".join(path.parts[below:]).upper()) + "_"


def check_guards(root, paths):
    found = []
    for path in paths:
        if path.suffix != ".h":
            continue
        guard = guard_of(path)
        code = source_tree.without_comments((root / path).read_text()).strip()
        if path.stem.endswith("-inl"):  # compiled once for each vector target
            start = rf"#if defined\({guard}\) == defined\(HWY_TARGET_TOGGLE\)\n"
        else:
            start = rf"#ifndef {guard}\n#define {guard}\n"
        if not re.match(start, code) or not code.endswith("#endif"):
            found.append(Violation(path, 1, f"expected the include guard {guard}"))
    return found


def check_public_cycles(root, paths):
    """Depth first; an include of a header that is still being visited closes a cycle."""
    graph = {}
    for path in filter(is_public, paths):
        name = "/".join(path.parts[1:])
        graph[name] = [(line, to) for line, _, to in includes_of((root / path).read_text())]
    found, done, visiting = [], set(), []

    def visit(name):
        visiting.append(name)
        for line, to in graph[name]:
            if to in visiting:
                cycle = " -> ".join(visiting[visiting.index(to) :] + [to])
                found.append(Violation(Path("include", name), line, f"cycle: {cycle}"))
            elif to in graph and to not in done:
                visit(to)
        visiting.pop()
        done.add(name)

    for name in graph:
        if name not in done:
            visit(name)
    return found


def check_links(root):
    """A layer's CMakeLists.txt names no library that the layer may not include."""
    found = []
    for path in source_tree.files_below(root, ["src"], {".txt", ".cmake"}):
        own = path.parts[1]
        if len(path.parts) < 3 or own not in ARROWS:
            continue
        for i, line in enumerate((root / path).read_text().splitlines()):
            for other in re.findall(r"\bkvick_([a-z]+)\b", line.partition("#")[0]):
                if other in ARROWS and other != own and other not in ARROWS[own]:
                    found.append(Violation(path, i + 1, f"{own} links kvick_{other}"))
    return found


def check(root):
    paths = source_tree.files_below(root, source_tree.CPP_FOLDERS, {".h", ".cc"})
    return (
        check_includes(root, paths)
        + check_guards(root, paths)
        + check_public_cycles(root, paths)
        + check_links(root)
    )


def header(guard, *includes):
    lines = "".join(f'#include "{name}"\n' for name in includes)
    return f"#ifndef {guard}\n#define {guard}\n{lines}#endif  // {guard}\n"


CLEAN = {
    "include/kvick/status.h": header("KVICK_STATUS_H_"),
    "include/kvick/kv_cache.h": header("KVICK_KV_CACHE_H_", "kvick/status.h"),
    "src/base/a.h": header("KVICK_BASE_A_H_", "kvick/status.h"),
    "src/base/b-inl.h": "// Why.\n#if defined(KVICK_BASE_B_INL_H_) == defined(HWY_TARGET_TOGGLE)\n"
    "#endif  // per target\n",
    "src/base/a_testing.h": header("KVICK_BASE_A_TESTING_H_", "base/a.h"),
    "src/cache/c.cc": '// #include "model/m.h"\n#include <cstdint>\n#include "base/a.h"\n',
    "src/cache/c_test.cc": '#include "base/a_testing.h"\n',
    "src/cache/CMakeLists.txt": "kvick_library(kvick_cache DEPENDS kvick_base)  # not kvick_model\n",
    "apps/kvick/main.cc": '#include "cli.h"\n#include "base/a.h"\n#include "kvick/kv_cache.h"\n',
}
PLANTED = {
    "upward include": (
        {"src/cache/c.cc": '\n#include "model/m.h"\n'},
        "src/cache/c.cc:2: cache includes model/m.h of model",
    ),
    "upward include in angle brackets": (
        {"src/ops/o.cc": "#include <cache/c.h>\n"},
        "src/ops/o.cc:1: ops includes cache/c.h of cache",
    ),
    "upward include by a public header": (
        {"src/base/a.cc": '#include "kvick/kv_cache.h"\n'},
        "base includes kvick/kv_cache.h of cache",
    ),
    "a layer skipped by the arrows": (
        {"src/engine/e.cc": '#include "attention/x.h"\n'},
        "engine includes attention/x.h of attention",
    ),
    "upward between public headers": (
        {"include/kvick/status.h": header("KVICK_STATUS_H_", "kvick/kv_cache.h")},
        "include/kvick/status.h:3: base includes kvick/kv_cache.h of cache",
    ),
    "cycle between public headers": (
        {"include/kvick/status.h": header("KVICK_STATUS_H_", "kvick/kv_cache.h")},
        "cycle: kvick/",
    ),
    "internal header in a public one": (
        {"include/kvick/kv_cache.h": header("KVICK_KV_CACHE_H_", "base/a.h")},
        "a public header may include kvick/, tl/ and std, got base/a.h",
    ),
    "library in a public header": (
        {"include/kvick/status.h": "#ifndef KVICK_STATUS_H_\n#include <fmt/format.h>\n#endif\n"},
        "a public header may include kvick/, tl/ and std, got fmt/format.h",
    ),
    "public header of no layer": (
        {"include/kvick/new.h": header("KVICK_NEW_H_")},
        "include/kvick/new.h:1: the file's layer is not in",
    ),
    "folder of no layer": (
        {"src/extra/x.cc": "int x;\n"},
        "src/extra/x.cc:1: the file's layer is not in",
    ),
    "relative path": ({"src/base/a.cc": '#include "../cache/c.h"\n'}, "relative path"),
    "header of an app": (
        {"src/base/a.cc": '#include "apps/kvick/cli.h"\n'},
        "outside of the include paths",
    ),
    "test header in the library": (
        {"src/base/a.cc": '#include "base/a_testing.h"\n'},
        "the library includes base/a_testing.h",
    ),
    "quoted neighbour": ({"src/base/a.cc": '#include "a.h"\n'}, "a.h is in quotes"),
    "wrong guard": (
        {"src/base/a.h": header("KVICK_A_H_")},
        "src/base/a.h:1: expected the include guard KVICK_BASE_A_H_",
    ),
    "wrong guard per target": ({"src/base/b-inl.h": header("KVICK_BASE_B_INL_H_")}, "b-inl.h:1"),
    "no guard in an app": ({"apps/kvick/cli.h": "#pragma once\n"}, "KVICK_APPS_KVICK_CLI_H_"),
    "upward link": (
        {"src/cache/CMakeLists.txt": "kvick_library(kvick_cache\n  DEPENDS kvick_model)\n"},
        "src/cache/CMakeLists.txt:2: cache links kvick_model",
    ),
}

if __name__ == "__main__":
    source_tree.main(check, CLEAN, PLANTED)
