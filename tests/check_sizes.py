#!/usr/bin/env python3
"""Checks sizes: of headers, sources and functions, and of the README in every folder of src/.

    check_sizes.py [ROOT]         the tree; exit code 1 if something in it is too long
    check_sizes.py --self-test    this check, on small trees with one violation each
"""

import re
from pathlib import Path

import source_tree
from source_tree import Violation

MAX_HEADER_LINES = 400
MAX_SOURCE_LINES = 800
MAX_FUNCTION_LINES = 80
MAX_README_LINES = 30

PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
TEMPLATE_HEAD = re.compile(r"\btemplate\s*<(?:[^<>{;]|<(?:[^<>{;]|<[^<>{;]*>)*>)*>")
SCOPE_HEAD = re.compile(
    r"^\s*(?:(?:public|private|protected)\s*:\s*)*"
    r"(?:(?:inline|typedef|static|const|constexpr)\s+)*"
    r"(?:namespace|class|struct|union|enum|extern\s*$)"
)


def outside_of_parentheses(text):
    depth, kept = 0, []
    for char in text:
        depth += char == "("
        if depth == 0:
            kept.append(char)
        depth -= char == ")" and depth > 0
    return "".join(kept)


def kind_of_block(head):
    """What a brace opens outside of functions, by what stands before it since the last statement.

    scope: namespace, class, enum;  value: a braced initializer;  function: any other, a lambda too
    """
    head = TEMPLATE_HEAD.sub("", head)
    if SCOPE_HEAD.match(head):
        return "scope"
    if re.search(r"[\w>\]]$", head):
        return "value"  # member_{0}: a function's brace has a space before it
    plain = re.sub(r"operator\s*[^\s\w(]+", "", outside_of_parentheses(head))
    _, is_assigned, value = plain.partition("=")
    is_lambda = is_assigned and "[" in value
    return "function" if "(" in head and (is_lambda or not is_assigned) else "value"


def functions_of(text):
    """(first line, last line) of each function that is not inside another. Lines from 1.

    ValueError: the braces do not match.
    """
    code = PREPROCESSOR.sub(
        lambda m: re.sub(r"[^\n]", " ", m[0]), source_tree.without_comments_and_strings(text)
    )
    found, open_blocks, head_start = [], [], 0
    for match in re.finditer(r"[{};]", code):
        place = match.start()
        is_inside = any(kind != "scope" for kind, _ in open_blocks)
        if match[0] == "{":
            kind = "inner" if is_inside else kind_of_block(code[head_start:place])
            open_blocks.append((kind, head_start))
            if kind == "scope":
                head_start = place + 1
        elif match[0] == "}":
            if not open_blocks:
                raise ValueError("a closing brace has no opening one")
            kind, start = open_blocks.pop()
            if kind == "function":
                start += len(code[start:place]) - len(code[start:place].lstrip())
                found.append((code.count("\n", 0, start) + 1, code.count("\n", 0, place) + 1))
            if kind in ("function", "scope"):
                head_start = place + 1
        elif not is_inside:
            head_start = place + 1
    if open_blocks:
        raise ValueError("an opening brace has no closing one")
    return found


def check_lines(path, text, limit):
    num_lines = len(text.splitlines())
    if num_lines <= limit:
        return []
    return [Violation(path, limit + 1, f"{num_lines} lines, expected at most {limit}")]


def check_functions(path, text):
    try:
        functions = functions_of(text)
    except ValueError as error:
        return [Violation(path, 1, str(error))]
    return [
        Violation(path, first, f"a function of {last - first + 1} lines, expected at most "
                  f"{MAX_FUNCTION_LINES}")
        for first, last in functions
        if last - first + 1 > MAX_FUNCTION_LINES
    ]


def check_readmes(root):
    found = []
    folders = {path.parts[1] for path in source_tree.files_below(root, ["src"], {".h", ".cc"})}
    for folder in sorted(folders):
        path = Path("src", folder, "README.md")
        if (root / path).exists():
            found += check_lines(path, (root / path).read_text(), MAX_README_LINES)
        else:
            found.append(Violation(path, 1, "the folder has no README.md"))
    return found


def check(root):
    found = check_readmes(root)
    for path in source_tree.files_below(root, source_tree.CPP_FOLDERS, {".h", ".cc"}):
        text = (root / path).read_text()
        found += check_lines(
            path, text, MAX_HEADER_LINES if path.suffix == ".h" else MAX_SOURCE_LINES
        )
        found += check_functions(path, text)
    return found


SHAPES = """
#define OPEN {  // a brace of the preprocessor's
namespace a::b {
namespace {
const char* kText = "} {";  // }
constexpr char kBrace = '{';
constexpr int kThousand = 1'000;
constexpr int kTable[] = {
LINES
};
enum class Kind { kA, kB };
template <class T, class = Type<Other<T>>>
struct Pair final : Base<T> {
  Pair() : first_{0}, second_(F({1})) {}
  bool operator==(const Pair& other) const { return true; }
 private:
  int first_{0}, second_;
LINES
};
}  // namespace
}  // namespace a::b
"""


def lines(num):
    return "\n" * num


def with_body(head, num_lines, tail="}\n"):
    """A block whose braces stand num_lines apart, the lines of both included."""
    return head + " {\n" + lines(num_lines - 2) + tail


LONG = MAX_FUNCTION_LINES + 1
CLEAN = {
    "src/base/README.md": lines(MAX_README_LINES),
    "src/base/a.h": lines(MAX_HEADER_LINES),
    "src/base/a.cc": lines(MAX_SOURCE_LINES),
    "src/base/shapes.cc": SHAPES.replace("LINES", lines(100)),
    "src/base/longest.cc": with_body("int F(int x)", MAX_FUNCTION_LINES),
}
A_LONG_FUNCTION = f"a function of {LONG} lines"


def long_function(name, head, line=1, tail="}\n", before="", after=""):
    text = before + with_body(head, LONG, tail) + after
    return name, ({"src/base/f.cc": text}, f"src/base/f.cc:{line}: {A_LONG_FUNCTION}")


PLANTED = dict(
    [
        ("header", ({"src/base/a.h": lines(401)}, "src/base/a.h:401: 401 lines")),
        ("source", ({"src/base/a.cc": lines(801)}, "src/base/a.cc:801: 801 lines")),
        ("README", ({"src/base/README.md": lines(31)}, "src/base/README.md:31: 31 lines")),
        ("no README", ({"src/cache/a.h": ""}, "src/cache/README.md:1: the folder has no")),
        ("open brace", ({"src/base/f.cc": "void F() {\n"}, "no closing one")),
        ("closing brace", ({"src/base/f.cc": "}\n"}, "no opening one")),
        long_function("function", "int F(int x)"),
        long_function("after a comment", "int F()", 2, before="// F } {\n"),
        long_function("after a brace in a macro", "int F()", 2, before="#define A {\n"),
        long_function("after a raw string", "int F()", 2, before='auto s = R"x(}" {)x";\n'),
        long_function("in a namespace", "int F()", 2, before="namespace a {\n", after="}\n"),
        long_function("template", "template <class T = A<B<int>>> T F(T x = T{})"),
        long_function("method", "int F() const", 2, before="class A {\n", after="};\n"),
        long_function("after a label", " public: A()", 2, before="class A {\n", after="};\n"),
        long_function("constructor", "A::A() : a_{1}, b_(2)"),
        long_function("operator", "bool operator==(A a, A b)"),
        long_function("default argument", "int F(int x = 1)"),
        long_function("struct as an argument", "int F(struct A* a)"),
        long_function("gtest's macro", "TEST_F(A, DoesB)"),
        long_function("lambda as a value", "const auto f = [](int x)", tail="};\n"),
        long_function("lambda as an argument", "REGISTER(A, [](int x)", tail="});\n"),
    ]
)

if __name__ == "__main__":
    source_tree.main(check, CLEAN, PLANTED)
