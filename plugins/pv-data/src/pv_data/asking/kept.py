"""A local model that was asked beforehand, in batches: its answers are kept, and so is why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from pv_data.asking.asker import Replied, Stopped
from pv_data.asking.keeping import Keeping, Question
from pv_data.asking.settings import Model
from pv_rl.judge.answer import FailureKind, JudgeFailure
from pv_rl.judge.cache import AnswerCache, CachedAnswer

__all__ = ["Kept", "Unanswered"]


class Unanswered:
    """Failures of a batch, by the key of the answer and the attempt, in a file of the form of the cache.

    Raises:
        DataError: the file is something else.
    """

    def __init__(self, path: Path) -> None:
        self._file = AnswerCache(path)

    def put(self, key: str, attempt: int, failure: JudgeFailure, model: str) -> None:
        """Remember a failure; its usage is that of all attempts so far."""
        text = json.dumps([failure.kind, str(failure), failure.text])
        self._file.put(f"{key}#{attempt}", CachedAnswer(text=text, usage=failure.usage, model=model))

    def get(self, key: str, attempt: int) -> JudgeFailure | None:
        """The failure of an attempt, if it was made and failed."""
        found = self._file.get(f"{key}#{attempt}")
        if found is None:
            return None
        kind, said, text = json.loads(found.text)
        assert kind in get_args(FailureKind)
        return JudgeFailure(said, kind, found.usage, 0.0, attempt + 1, text)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Kept:
    """Gives what was answered, in the place of an `Asker`. It sends nothing."""

    def __init__(self, model: Model, unanswered: Path) -> None:
        assert model.cache is not None
        self._model, self._keeping = model, Keeping(model)
        self._cache = AnswerCache(model.cache)
        self._unanswered = Unanswered(unanswered)
        self._why: str | None = None

    async def ask(self, question: Question, parse: Callable[[str], Any] | None, *, sample: int) -> Replied:
        """The answer to a question.

        Raises:
            JudgeFailure: there is no usable answer; the row is set aside.
            Stopped: it was not asked.
        """
        if self._why is not None:
            raise Stopped(self._why)
        key = self._keeping.key(question, sample)
        known = self._cache.get(key)
        if known is not None:
            value = parse(known.text) if parse else known.text
            return Replied(value=value, text=known.text, origin=self._keeping.origin(question, sample, known))
        for attempt in reversed(range(self._model.retries.attempts)):
            if (failure := self._unanswered.get(key, attempt)) is not None:
                raise failure
        raise Stopped(f"{self._model.model} was not asked all questions")

    def stop(self, why: str) -> None:
        """Give nothing any more."""
        self._why = self._why or why

    async def aclose(self) -> None:
        """Close the files."""
        self._cache.close()
        self._unanswered.close()
