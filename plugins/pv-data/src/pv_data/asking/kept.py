"""A local model that was asked beforehand, in batches: its answers are kept, and so is why there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pv_data.asking.asker import Replied, Stopped
from pv_data.asking.keeping import Keeping, Question
from pv_data.asking.settings import Model
from pv_data.asking.unanswered import Unanswered
from pv_judge.cache import AnswerCache

__all__ = ["Kept"]


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
        _, failure = self._unanswered.last(key)
        if failure is not None:
            raise failure
        raise Stopped(f"{self._model.model} was not asked all questions")

    def stop(self, why: str) -> None:
        """Give nothing any more."""
        self._why = self._why or why

    async def aclose(self) -> None:
        """Close the files."""
        self._cache.close()
        self._unanswered.close()
