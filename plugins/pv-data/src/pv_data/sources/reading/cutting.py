"""Text template: cuts parts out of a prompt, between literal marks.

    ### Problem Statement:{problem}### Model Solution:{proof}

Text before the first mark and behind the last is dropped, and `{}` is a part that is not kept. A mark has to be in the
text exactly once, in the template's order: where a proof quotes a mark, nobody can tell its end, and the row is set
aside. The work is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["Template"]


class Template:
    """A template with the names of columns' meanings in braces."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        """
        Args:
            text: marks and `{name}`; white space around a mark does not count.
            names: that are known. Other braces are text.

        Raises:
            ConfigError: it has no mark or no name, one twice, or two names without a mark between them.
        """
        pieces = re.split(rf"\{{((?:{'|'.join(names)})?)\}}", text)
        self._marks = [one.strip() for one in pieces[::2]]
        self.names = pieces[1::2]
        kept = [name for name in self.names if name]
        if not kept or len(set(kept)) < len(kept) or not any(self._marks) or not all(self._marks[1:-1]):
            raise ConfigError(
                f"cut: {text!r:.200} cannot cut a text. It is marks with {{NAME}} between them, each once, for example "
                f"'### Problem:{{problem}}### Proof:{{proof}}'; a NAME is {', '.join(names)}, or nothing for what is "
                "not kept"
            )

    def cut(self, text: str, where: str) -> dict[str, str]:
        """The parts, by name.

        Args:
            text: of a row.
            where: the column, for errors.

        Raises:
            Unusable: a mark is missing, is there several times, or is not in its place.
        """
        bounds, last = list[tuple[int, int]](), 0
        for number, mark in enumerate(self._marks):
            if not mark:
                bounds.append((0, 0) if number == 0 else (len(text), len(text)))
                continue
            start = text.find(mark)
            if start < 0 or text.find(mark, start + 1) >= 0:
                how_often = "not in the text" if start < 0 else "in the text several times"
                raise Unusable(
                    f"cut: {where}", f"the mark {mark[:80]!r} is {how_often}; it has to be there once"
                )
            if start < last:
                raise Unusable(
                    f"cut: {where}", f"the mark {mark[:80]!r} is before the one that it should follow"
                )
            last = start + len(mark)
            bounds.append((start, last))
        return {
            name: text[bounds[number][1] : bounds[number + 1][0]].strip()
            for number, name in enumerate(self.names)
            if name
        }
