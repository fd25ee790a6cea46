"""Store of unusable answers of an unfinished stage: a resumed run does not pay for them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from pv_judge.answer import FailureKind, JudgeFailure, Usage
from pv_judge.cache import AnswerCache, CachedAnswer

__all__ = ["ANSWERED", "DOUBT", "UNREADABLE", "Unanswered", "entry"]

UNREADABLE: frozenset[FailureKind] = frozenset({"invalid_json", "wrong_schema", "bad_response"})
"""The model answered and nobody can use it: with the same seed it would answer the same again."""
ANSWERED: frozenset[FailureKind] = frozenset({*UNREADABLE, "truncated", "no_text"})
"""Failures that are answers, and were paid for."""


DOUBT = ("doubt", CachedAnswer(text="", usage=Usage(), model=""))
"""Stands beside failures where so many came in a row that the model did not work: they count for nothing then."""


def entry(key: str, attempt: int, failure: JudgeFailure, model: str) -> tuple[str, CachedAnswer]:
    """How a failure is written down: its usage is that of all attempts so far, which begin at 0."""
    text = json.dumps([failure.kind, str(failure), failure.text])
    return f"{key}#{attempt}", CachedAnswer(text=text, usage=failure.usage, model=model)


class Unanswered:
    """Failures by the key of the answer and the attempt, in a file of the form of the cache.

    Raises:
        DataError: the file is something else.
    """

    def __init__(self, path: Path) -> None:
        self._file = AnswerCache(path)

    def put(self, key: str, attempt: int, failure: JudgeFailure, model: str) -> None:
        """Remember a failure; its usage is that of all attempts so far."""
        self._file.put(*entry(key, attempt, failure, model))

    def get(self, key: str, attempt: int) -> JudgeFailure | None:
        """The failure of an attempt, if it was made and failed."""
        found = self._file.get(f"{key}#{attempt}")
        if found is None:
            return None
        try:
            kind, said, text = json.loads(found.text)
        except (ValueError, TypeError):  # damaged
            return None
        if kind not in get_args(FailureKind):
            return None
        return JudgeFailure(said, kind, found.usage, 0.0, attempt + 1, text)

    @property
    def in_doubt(self) -> bool:
        """Whether what is in it counts for nothing."""
        return self._file.get(DOUBT[0]) is not None

    def last(self, key: str) -> tuple[int, JudgeFailure | None]:
        """How many attempts were made and failed, and the failure of the last."""
        attempt, failure = 0, None
        while (found := self.get(key, attempt)) is not None:
            attempt, failure = attempt + 1, found
        return attempt, failure

    def close(self) -> None:
        """Close the file."""
        self._file.close()
