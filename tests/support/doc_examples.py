"""Runner of an example in Python, with a check of each value that a comment behind an expression promises.

python doc_examples.py FILE
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

VALUE = ("[", "(", "{", "'", '"', "True", "False", "None")
"""A comment that begins with one of these promises a value; others are prose."""


def run_example(source: str) -> int:
    """Run a program statement by statement; the number of values that were compared."""
    compared, lines, names = 0, source.splitlines(), {"__name__": "example"}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), "example", "exec"), names)
            continue
        value = eval(compile(ast.Expression(node.value), "example", "eval"), names)
        behind = lines[node.end_lineno - 1][node.end_col_offset :] or "".join(lines[node.end_lineno :][:1])
        if (promised := behind.strip().removeprefix("# ")).startswith(VALUE):
            assert repr(value) == promised, f"{ast.unparse(node)} is {value!r}"
            compared += 1
    return compared


if __name__ == "__main__":
    run_example(Path(sys.argv[1]).read_text(encoding="utf-8"))
