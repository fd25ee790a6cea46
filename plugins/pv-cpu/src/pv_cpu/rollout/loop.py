"""The engine in a thread: requests and commands go in, futures come back."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import torch

from pv_cpu.rollout.engine import Engine, split
from pv_cpu.rollout.request import Completion, Request

__all__ = ["EngineLoop"]

logger = logging.getLogger(__name__)

QUIET_SECONDS = 0.01
"""An idle engine waits until no request has come for this long: a step's requests come one by one."""
PATIENCE_SECONDS = 0.1
"""But it never makes a request wait longer than this while rows are free."""


class EngineLoop:
    """Owns the thread. Its methods may be called from any other thread."""

    def __init__(self, engine: Engine[Future], *, threads: int | None = None) -> None:
        self.engine = engine
        self.threads = threads
        """Of torch, in the engine's thread only. None leaves them as they are."""
        self._pending: deque[tuple[Request, Future, float]] = deque()
        self._commands: deque[tuple[Callable[[], Any], Future]] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="pv_cpu_engine", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> Future:
        """A future of the ``Completion``."""
        future: Future = Future()
        with self._changed:
            self._pending.append((request, future, time.monotonic()))
            self._changed.notify()
        return future

    def call(self, command: Callable[[], Any]) -> Future:
        """Run something in the engine's thread, between two steps."""
        future: Future = Future()
        with self._changed:
            self._commands.append((command, future))
            self._changed.notify()
        return future

    def abort_all(self) -> Future:
        """Answer every request with what it has so far; the future holds how many there were."""
        return self.call(self._abort_all)

    def close(self) -> None:
        """Stop the thread. Requests in flight are aborted."""
        self.abort_all()
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join()

    def _abort_all(self) -> int:
        with self._changed:
            waiting = [future for _, future, _ in self._pending]
            self._pending.clear()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_result(Completion(token_ids=[], log_probs=[], aborted=True))
        running = self.engine.abort()
        for future, completion in running:
            future.set_result(completion)
        return len(waiting) + len(running)

    def _run(self) -> None:
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        while True:
            with self._changed:
                while not (self._commands or self._pending or len(self.engine.rows) or self._stopped):
                    self._changed.wait()
                commands = list(self._commands)
                self._commands.clear()
                if self._stopped and not commands:
                    return
            for command, future in commands:
                try:
                    future.set_result(command())
                except Exception as error:  # noqa: BLE001  (it belongs to whoever gave the command)
                    future.set_exception(error)
            self._admit(self._take())
            if len(self.engine.rows):
                self._step()

    def _take(self) -> list[tuple[Request, Future]]:
        """The requests to admit now: none while more are on their way."""
        with self._changed:
            running = len(self.engine.rows)
            while not running and 0 < len(self._pending) < self.engine.free and not self._commands:
                seen = len(self._pending)
                oldest = time.monotonic() - self._pending[0][2]
                self._changed.wait(QUIET_SECONDS)
                if len(self._pending) == seen or oldest > PATIENCE_SECONDS:
                    break
            count = min(len(self._pending), self.engine.free)
            if running and count < max(1, running // 4):
                waited = time.monotonic() - self._pending[0][2] if count else 0.0
                if waited < PATIENCE_SECONDS:
                    return []
            return [self._pending.popleft()[:2] for _ in range(count)]

    def _admit(self, taken: list[tuple[Request, Future]]) -> None:
        taken = [pair for pair in taken if pair[1].set_running_or_notify_cancel()]
        for chunk in split(taken, self.engine.max_prefill_tokens):
            self._admit_chunk(chunk)

    def _admit_chunk(self, chunk: list[tuple[Request, Future]]) -> None:
        """Admit together; if that fails, one by one, so that only the culprit's caller sees it."""
        requests, futures = [request for request, _ in chunk], [future for _, future in chunk]
        try:
            finished = self.engine.admit(requests, futures)
        except Exception as error:  # noqa: BLE001  (it belongs to a caller; the server lives on)
            if len(chunk) > 1:
                for pair in chunk:
                    self._admit_chunk([pair])
                return
            logger.warning("a request failed: %r", error)
            futures[0].set_exception(error)
            return
        for future, completion in finished:
            future.set_result(completion)

    def _step(self) -> None:
        try:
            finished = self.engine.step()
        except Exception as error:  # as above: the rows fail, the server lives on
            logger.exception("a decoding step failed; the requests in it fail")
            futures = list(self.engine.rows.tags)
            self.engine.reset()
            for future in futures:
                future.set_exception(error)
            return
        for future, completion in finished:
            future.set_result(completion)
