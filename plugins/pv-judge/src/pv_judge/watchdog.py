"""Watchdog of the judge's actor: restarts an actor that no longer answers, and gives up on one that does not recover.

An event loop that hangs answers no question: every reward waits until its own deadline, in this step and in all later
ones. Nothing inside the actor can end that, so the driver kills the process and Ray restarts it.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

__all__ = ["Watchdog", "last_line"]

logger = logging.getLogger("pv_rl")

EVERY_S = 10.0
"""Seconds between two pings."""
SILENT_S = 60.0
"""Seconds without an answer to a ping after which the actor is restarted."""
START_S = 60.0
"""Seconds more that the first ping after a restart may take: the actor imports its modules."""
RESTARTS, WITHIN_S = 5, 3600.0
"""The watchdog gives up at the next silence after so many restarts within so many seconds."""


class Watchdog:
    """Pings an actor from a thread of the driver until `stop`."""

    def __init__(self, actor: Any) -> None:
        """`actor` is a Ray handle; it answers `ping` and was created with `max_restarts`."""
        self.gave_up: str | None = None
        """Why the actor cannot be restarted, for the error that ends the run."""
        self.restarts = 0
        self._actor = actor
        self._recent: list[float] = []
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, name="pv_rl_judge_watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop pinging."""
        self._stopped.set()

    def _watch(self) -> None:
        import ray
        from ray.exceptions import ActorDiedError, GetTimeoutError

        patience = SILENT_S
        while self.gave_up is None and not self._stopped.wait(EVERY_S):
            try:
                ping = self._actor.ping.remote()
                # Two waits: after a pause of this process the first ends at once, although the answer is coming.
                ray.wait([ping], timeout=patience / 2)
                ray.get(ping, timeout=patience / 2)
                patience = SILENT_S
            except GetTimeoutError:
                if not self._stopped.is_set():
                    self._restart(ray, patience)
                    patience = SILENT_S + START_S
            except ActorDiedError as error:
                self._give_up(f"the judge's actor died and cannot be restarted: {last_line(error)}")
            except Exception:
                if not ray.is_initialized():  # the run is over
                    return
                logger.debug("the judge's actor could not be pinged", exc_info=True)

    def _restart(self, ray: Any, silence_s: float) -> None:
        now = time.monotonic()
        self._recent = [at for at in self._recent if now - at < WITHIN_S]
        if len(self._recent) >= RESTARTS:
            self._give_up(
                f"the judge's actor stopped answering again after {RESTARTS} restarts within {WITHIN_S:g} s"
            )
            return
        self._recent.append(now)
        self.restarts += 1
        logger.error(
            "The judge's actor did not answer for %g s: restarting it. Questions in flight are asked again. "
            "The run ends with a checkpoint if this happens more than %d times in %g s.",
            silence_s,
            RESTARTS,
            WITHIN_S,
        )
        ray.kill(self._actor, no_restart=False)

    def _give_up(self, reason: str) -> None:
        self.gave_up = reason
        logger.error("%s. The run ends after this step.", reason[0].upper() + reason[1:])


def last_line(error: Exception) -> str:
    """The message of an actor's error, without the traceback that Ray puts before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
