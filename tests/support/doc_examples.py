"""Runner of a page's examples: each block of Python, and each value that a comment behind an expression promises."""

from __future__ import annotations

import ast
import re
from pathlib import Path


def run_examples(page: Path) -> int:
    """Run the blocks of a page one by one, each in a namespace of its own; the number of values that were compared."""
    compared = 0
    for block in re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        lines, names = block.splitlines(), {"__name__": "example"}
        for node in ast.parse(block).body:
            if not isinstance(node, ast.Expr):
                exec(compile(ast.Module([node], []), str(page), "exec"), names)
                continue
            value = eval(compile(ast.Expression(node.value), str(page), "eval"), names)
            behind = lines[node.end_lineno - 1][node.end_col_offset :] or "".join(
                lines[node.end_lineno :][:1]
            )
            promised = behind.strip().removeprefix("# ")
            assert repr(value) == promised, f"{page.name}: {ast.unparse(node)}"
            compared += 1
    return compared
