"""Response cache of a judge service: answers in memory for the run, and in a cache file if the config names one."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pv_judge.answer import Answer, JudgeFailure, Question
from pv_judge.cache import AnswerCache, CachedAnswer, cache_key
from pv_judge.config import Endpoint, JudgeConfig
from pv_rl.errors import DataError

__all__ = ["ResponseCache"]

logger = logging.getLogger("pv_rl")

IN_MEMORY = 20_000


class ResponseCache:
    """Finds an answer by everything that it depends on. Failures are never kept.

    A file that cannot be read or written is counted and logged once, and the run continues without it.
    """

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._memory: OrderedDict[str, CachedAnswer] = OrderedDict()
        self._disk = AnswerCache(config.cache) if config.cache else None
        self._errors = self._reported = 0

    def key(self, question: Question) -> str:
        """Key of the preferred endpoint's answer."""
        return self._key(question, self._config.endpoints[0])

    def _key(self, question: Question, endpoint: Endpoint) -> str:
        sampling = {
            **self._config.sampling,
            "response_format": self._config.response_format,
            "extra_body": endpoint.extra_body,
        }
        return cache_key(
            template_hash=question.template,
            model=endpoint.model,
            sampling=sampling,
            text=json.dumps([dict(message) for message in question.messages]),
        )

    async def get(self, question: Question) -> Answer | None:
        """A known answer of any of the endpoints, those that are preferred first; it costs nothing."""
        for endpoint in self._config.endpoints:
            key = self._key(question, endpoint)
            known = self._memory.get(key)
            if known is None and self._disk is not None:
                known = await self._try(self._disk.get, key)
            if known is None:
                continue
            try:
                value = question.parse(known.text)
            except JudgeFailure:  # damaged, or of another parser: the next answer replaces it
                if self._disk is not None:
                    await self._try(self._disk.drop, key)
                continue
            return Answer(
                text=known.text,
                value=value,
                model=endpoint.model,
                endpoint=endpoint.url,
                requests=0,
                cached=True,
            )
        return None

    async def put(self, question: Question, answer: Answer) -> None:
        """Keep an answer."""
        endpoint = next(
            one for one in self._config.endpoints if (one.url, one.model) == (answer.endpoint, answer.model)
        )
        key = self._key(question, endpoint)
        known = CachedAnswer(text=answer.text, usage=answer.usage, model=answer.model)
        self._memory[key] = known
        if len(self._memory) > IN_MEMORY:
            self._memory.popitem(last=False)
        if self._disk is not None:
            await self._try(self._disk.put, key, known)

    def take_errors(self) -> int:
        """Reads and writes of the file that failed since the last call, and answers that were damaged."""
        errors = self._errors + (self._disk.damaged if self._disk is not None else 0)
        self._reported, errors = errors, errors - self._reported
        return errors

    async def _try(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(function, *arguments)
        except (OSError, sqlite3.Error, DataError):
            self._errors += 1
            if self._errors == 1:
                logger.exception(
                    "the judge's cache %s failed; the run continues without it", self._config.cache
                )
            return None
