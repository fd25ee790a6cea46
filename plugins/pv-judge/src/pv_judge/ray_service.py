"""Ray service of the judge: one named actor for all processes of a run, or a local service without Ray."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary

from pv_judge.answer import Answer, JudgeFailure, Question
from pv_judge.client import JudgeClient
from pv_judge.ledger import LedgerRow
from pv_judge.metrics import FailureLog, RowId, Span
from pv_judge.quarantine import Quarantine
from pv_judge.service import JudgeService, ServiceConfig
from pv_judge.spend_file import FILE, spend_path
from pv_judge.watchdog import Watchdog, last_line
from pv_rl.errors import SetupError

__all__ = [
    "DriverService",
    "SharedService",
    "actor_name",
    "close_local_services",
    "driver_services",
    "forget_services",
    "local_reports",
    "prepare_service",
    "run_folder",
    "shared_service",
]

REPORT_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 120.0
RESTART_S = 60.0
"""Seconds more than a question's deadline for an actor that died and is restarted."""

run_folder: ContextVar[Path | None] = ContextVar("pv_rl_run_folder", default=None)
"""Folder of the run, the same one after a resume, for its spend file. Set it around `prepare_service`, and outside Ray
around `shared_service`. None: a resumed run restarts its budget, and outside Ray the spending is in memory only."""


class SharedService(Protocol):
    """What a reward needs of the service, in this process or in an actor."""

    async def ask(self, question: Question) -> Answer | JudgeFailure: ...
    async def record(
        self, row: LedgerRow, begin: float | None = None, failed: bool | None = None
    ) -> None: ...


def shared_service(config: ServiceConfig) -> SharedService:
    """The run's service for these settings, from any of its processes. Call it within an event loop.

    Raises:
        SetupError: in a Ray run, `prepare_service` was not called in the driver.
    """
    ray = _ray()
    if ray is None:
        return _local_service(config)
    name = actor_name(config)
    if name not in _remote:
        try:
            _remote[name] = _RayService(ray.get_actor(name), config)
        except ValueError as error:
            raise SetupError(
                "no judge was prepared for this Ray run, so limits and budget would hold for one process only. "
                "Call the reward's `prepare` in the driver first, as pv-rl's verl adapter does"
            ) from error
    return _remote[name]


def prepare_service(config: ServiceConfig) -> None:
    """Start the service, in the driver of a Ray run. The actor lives as long as the driver.

    It runs on the driver's node and in its folder, and gets the API keys of its environment.

    Raises:
        ConfigError: a key is not in the environment.
        SetupError: the actor did not start; the text says why.
    """
    keys = {}
    if config.judge is not None:
        JudgeClient(config.judge)  # reads the keys
        keys = {e.api_key_env: os.environ[e.api_key_env] for e in config.judge.endpoints if e.api_key_env}
    spent = _spend_file(config)
    ray = _ray()
    name = actor_name(config)
    if ray is None or name in _of_driver:
        return
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    actor = ray.remote(_Actor).options(
        name=name,
        get_if_exists=True,
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=3,
        max_concurrency=1_000_000,
        scheduling_strategy=NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        ),
    )
    spent = spent or Path(_of_no_run().name) / f"{name}-{FILE}"
    service = DriverService(actor.remote(config, keys, os.getcwd(), spent, uuid4().hex))
    try:
        service.halt_reason()
    except ray.exceptions.RayError as error:
        raise SetupError(f"the judge's actor did not start: {last_line(error)}") from None
    service.watch()
    _of_driver[name] = service


def actor_name(config: ServiceConfig) -> str:
    """Name of the Ray actor for these settings."""
    return f"pv_rl_judge_{config.digest}"


def forget_services() -> None:
    """Stop the watchdogs of this process and forget its actors, before it joins another Ray run."""
    for service in driver_services():
        if service.watchdog is not None:
            service.watchdog.stop()
    _of_driver.clear()
    _remote.clear()


def driver_services() -> list[DriverService]:
    """The services that this process has prepared."""
    return list(_of_driver.values())


class DriverService:
    """An actor's service, for the trainer: blocking calls with a timeout, and a watchdog that restarts the actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self.watchdog: Watchdog | None = None

    def report(self, step: int, rows: Iterable[RowId], window: Span | None) -> dict[str, float]:
        """See `JudgeService.report`; `actor_restarts/max`: restarts by the watchdog."""
        numbers = self._get(self._actor.report.remote(step, list(rows), window), REPORT_TIMEOUT_S)
        restarts = self.watchdog.restarts if self.watchdog else 0
        return {**numbers, "actor_restarts/max": float(restarts)}

    def halt_reason(self) -> str | None:
        """See `JudgeService.halt_reason`; also why the actor cannot be restarted, if the watchdog has given up."""
        if self.watchdog is not None and self.watchdog.gave_up:
            return self.watchdog.gave_up
        return self._get(self._actor.halt_reason.remote(), REPORT_TIMEOUT_S)

    def watch(self) -> None:
        """Start the watchdog; `close` stops it."""
        self.watchdog = Watchdog(self._actor)

    def close(self) -> None:
        """See `JudgeService.close`."""
        if self.watchdog is not None:
            self.watchdog.stop()
        self._get(self._actor.close.remote(), CLOSE_TIMEOUT_S)

    @staticmethod
    def _get(reference: Any, timeout: float) -> Any:
        import ray

        return ray.get(reference, timeout=timeout)


class _RayService:
    """An actor's service, for a reward worker."""

    def __init__(self, actor: Any, config: ServiceConfig) -> None:
        self._actor = actor
        self._patience = (config.judge.deadline_s if config.judge else 0.0) + RESTART_S
        self._log = FailureLog()

    async def ask(self, question: Question) -> Answer | JudgeFailure:
        from ray.exceptions import RayError, RayTaskError

        try:
            return await asyncio.wait_for(self._actor.ask.remote(question), self._patience)
        except RayTaskError:  # a bug: the reward has failed, not the judge
            raise
        except (RayError, TimeoutError) as error:
            return self._failure("the judge's actor did not answer", error)

    async def record(self, row: LedgerRow, begin: float | None = None, failed: bool | None = None) -> None:
        from ray.exceptions import RayError

        try:
            await asyncio.wait_for(self._actor.record.remote(row, begin, failed), RESTART_S)
        except (RayError, TimeoutError) as error:
            # The reward is known, and is not lost because its row could not be written.
            self._failure("a row was not written to the judge's ledger", error)

    def _failure(self, what: str, error: Exception) -> JudgeFailure:
        failure = JudgeFailure(f"{what}: {type(error).__name__}", "connect")
        self._log.add(failure)
        return failure


class _Actor(JudgeService):
    """The service in its Ray actor, with the driver's API keys and working folder."""

    def __init__(
        self, config: ServiceConfig, keys: Mapping[str, str], folder: str, spent: Path, start: str
    ) -> None:
        os.environ.update(keys)
        os.chdir(folder)
        super().__init__(config, spent, start)
        self.quarantine = Quarantine(spent.with_name(f"{spent.name}.parsing"))

    async def ping(self) -> None:
        """For the watchdog: returns as long as the event loop runs."""


async def local_reports() -> list[dict[str, float]]:
    """What the services of this event loop that have a judge report, see `JudgeService.report`."""
    services = _local.get(asyncio.get_running_loop(), {}).values()
    return [await service.report(0) for service in services if service.client is not None]


async def close_local_services() -> None:
    """Close the services of this event loop."""
    for service in _local.pop(asyncio.get_running_loop(), {}).values():
        await service.close()
    _spend_files.clear()  # the next services of this process belong to a resumed run


_local: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, JudgeService]] = WeakKeyDictionary()
_remote: dict[str, _RayService] = {}
_of_driver: dict[str, DriverService] = {}
_spend_files: dict[tuple[Path, str], Path] = {}
"""By run folder and digest, in the order in which services were prepared: that of the config."""


def _local_service(config: ServiceConfig) -> JudgeService:
    services = _local.setdefault(asyncio.get_running_loop(), {})
    if config.digest not in services:
        services[config.digest] = JudgeService(config, _spend_file(config))
    return services[config.digest]


def _spend_file(config: ServiceConfig) -> Path | None:
    """Path in the run's folder; None without a folder or a judge."""
    folder, judge = run_folder.get(), config.judge
    if folder is None or judge is None:
        return None
    run = folder.expanduser().absolute()
    if (run, config.digest) not in _spend_files:
        number = 1 + sum(run == other for other, _ in _spend_files)
        beside = config.ledger or (Path(judge.cache).parent if judge.cache else None)
        earlier = Path(beside).expanduser() / FILE if beside else None
        _spend_files[run, config.digest] = spend_path(run, number, earlier)
    return _spend_files[run, config.digest]


@functools.cache
def _of_no_run() -> tempfile.TemporaryDirectory[str]:
    """For Ray runs without a folder: the spend file outlives the actor, but not the driver."""
    return tempfile.TemporaryDirectory(prefix="pv_rl_judge_")


def _ray() -> Any:
    """Ray, if this process is part of a Ray run."""
    ray = sys.modules.get("ray")
    return ray if ray is not None and ray.is_initialized() else None
