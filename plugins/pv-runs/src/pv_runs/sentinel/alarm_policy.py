"""Alarm policy: reports each alarm, and decides on an action when enough of them agree."""

from __future__ import annotations

import json
import logging
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pv_rl.errors import ConfigError, DataError
from pv_rl.plugins import nearest
from pv_runs import metric_names
from pv_runs.sentinel.settings import SentinelConfig
from pv_runs.sentinel.watcher import Alarm, Watcher

__all__ = ["ACTIONS", "AlarmPolicy", "AlarmPolicyConfig", "Due"]

logger = logging.getLogger("pv_rl")

ACTIONS = ("log", "checkpoint", "stop", "rollback")
WEBHOOK_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class AlarmPolicyConfig:
    """The keys under `sentinel` of a config."""

    action: str = "log"
    """`log`: tell and do nothing. `checkpoint`: save one now. `stop`: save one and end the run. `rollback`: go back to
    the policy of the last checkpoint before the change began and lower the learning rate, once; after that `stop`."""
    agree: int = 2
    """Families of signs that have to alarm within `within` steps before anything but telling is done, 1 or more. Signs
    of a family read the same responses (`Detector.family`), so that one odd batch is one of them."""
    within: int = 10
    """Steps, 1 or more; and after an action so many pass before another."""
    from_step: int = 1
    """First step that is watched."""
    lr_factor: float = 0.5
    """What a rollback multiplies the actor's learning rate by, above 0 and at most 1."""
    file: str | None = None
    """JSON lines of alarms and actions; none: `sentinel.jsonl` in `trainer.default_local_dir`."""
    webhook_env: str = "PV_RL_WEBHOOK"
    """Name of the environment variable with a URL that gets each alarm and action as a JSON POST; unset, nothing is
    sent. The URL may hold a key: it is in no config and in no log."""
    watch: Mapping[str, Any] = field(default_factory=dict)
    """Of `SentinelConfig`; `responses` is taken from the run."""

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ConfigError(
                f"sentinel.action is {self.action!r}; give one of {', '.join(ACTIONS)}."
                f"{nearest(str(self.action), ACTIONS)}"
            )
        for name in ("agree", "within", "from_step"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"sentinel.{name} is {value!r}; give a whole number of 1 or more")
        if (
            isinstance(self.lr_factor, bool)
            or not isinstance(self.lr_factor, int | float)
            or not 0 < self.lr_factor <= 1
        ):
            raise ConfigError(f"sentinel.lr_factor is {self.lr_factor!r}; give a number above 0, at most 1")
        if not isinstance(self.webhook_env, str):
            raise ConfigError("sentinel.webhook_env is no text; give the name of an environment variable")
        if self.webhook and not self.webhook.startswith(("https://", "http://")):
            raise ConfigError(
                f"the environment variable {self.webhook_env} holds no URL; it has to begin with https:// or http://"
            )

    @property
    def webhook(self) -> str | None:
        """The URL, if there is one."""
        return os.environ.get(self.webhook_env) or None

    @classmethod
    def read(cls, given: Any) -> AlarmPolicyConfig:
        """From the mapping of a config.

        Raises:
            ConfigError: it is none, or a key or a value is not allowed.
        """
        names = [one.name for one in fields(cls)]
        if not isinstance(given, Mapping):
            raise ConfigError(
                f"sentinel is {given!r}; set a key of it, for example +sentinel.action=log. Keys: {', '.join(names)}"
            )
        _check_keys("sentinel", given, names)
        return cls(**given)

    def watching(self, responses: int) -> SentinelConfig:
        """What is watched in a run of so many responses a step.

        Raises:
            ConfigError: a key under `watch` is unknown or out of bounds.
        """
        names = [one.name for one in fields(SentinelConfig)]
        if not isinstance(self.watch, Mapping):
            raise ConfigError(f"sentinel.watch is {self.watch!r}; set keys of it: {', '.join(names)}")
        _check_keys("sentinel.watch", self.watch, names)
        return SentinelConfig(**{"responses": responses, **self.watch})


@dataclass(frozen=True, kw_only=True)
class Due:
    """An action that a trainer has to take."""

    action: str
    """One of `ACTIONS` but `log`."""
    since: int
    """The step at which the earliest of the changes began; a good checkpoint is older."""
    reason: str
    """For a person."""


class AlarmPolicy:
    """Feeds a watcher with a run's metrics, tells its alarms, and keeps what is due until somebody takes it."""

    def __init__(self, config: AlarmPolicyConfig, watcher: Watcher, file: Path) -> None:
        self.config, self.watcher, self.file = config, watcher, file
        self.rolled_back = False
        self._seen = 0
        self._recent: dict[str, Alarm] = {}
        self._quiet_until = 0
        self._due: Due | None = None

    def observe(self, step: int, metrics: Mapping[str, Any]) -> dict[str, float]:
        """Take in what is logged at a step, and return the numbers to log with it."""
        last = self.watcher.last_step
        again = step < 1 or (last is not None and step <= last)
        if again or not self.watcher.reads(metrics):
            # validation before the first step; a second line of a step; one of something else, of timings for example
            alarms = self.watcher.validated(step, metrics, quiet=step < self.config.from_step)
            self._report(step, alarms)
            return {metric_names.ALARMS: float(len(alarms))} if alarms else {}
        if step < self.config.from_step:
            self.watcher.passed(step, metrics)
            self.watcher.validated(step, metrics, quiet=True)
            return {}
        alarms = self.watcher.observe(step, metrics)
        self._seen += 1
        if self._seen == self.watcher.config.warm_up and (missing := self.watcher.missing()):
            logger.warning(
                "sentinel: %s cannot be watched, since this run logs no %s",
                ", ".join(missing),
                ", ".join(dict.fromkeys(names[0] for needed in missing.values() for names in needed)),
            )
        self._report(step, alarms)
        highest = max((level["alertness"] for level in self.watcher.levels().values()), default=0.0)
        return {metric_names.ALARMS: float(len(alarms)), metric_names.ALERTNESS: highest}

    def take(self) -> Due | None:
        """What is due, once."""
        due, self._due = self._due, None
        return due

    def tell(self, event: Mapping[str, Any]) -> None:
        """Write an event to the file and send it to the webhook. That neither works is said and no reason to stop."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as file:
                file.write(json.dumps(event) + "\n")
        except OSError as error:
            logger.warning("sentinel: %s cannot be written: %s", self.file, error)
        if url := self.config.webhook:
            threading.Thread(target=_post, args=(url, dict(event)), daemon=True).start()

    def state(self) -> dict[str, Any]:
        """All that has to be kept with a checkpoint, ready for JSON."""
        return {
            "watcher": self.watcher.state(),
            "rolled_back": self.rolled_back,
            "quiet_until": self._quiet_until,
        }

    def state_with(self, step: int, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """The state with a validation, but none of its alarms: a run that goes on from there raises those, as it does
        the alarms of that step's other metrics."""
        later = deepcopy(self.watcher)
        later.validated(step, metrics, quiet=True)
        return self.state() | {"watcher": later.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`.

        Raises:
            DataError: it is not one.
        """
        quiet = state.get("quiet_until", 0) if isinstance(state, Mapping) else None
        if type(quiet) is not int:
            raise DataError(
                "sentinel: the saved state cannot be read (it has no step quiet_until); delete it, and the sentinel "
                "learns anew"
            )
        self.watcher = Watcher.restore(self.watcher.config, state.get("watcher", {}))
        self.rolled_back, self._quiet_until = bool(state.get("rolled_back")), quiet

    def went_back(self, to: int, now: int, state: Mapping[str, Any] | None) -> None:
        """The policy is that of the end of step `to` again, after step `now`: know what was known then, or nothing."""
        try:
            watcher = Watcher.restore(self.watcher.config, (state or {}).get("watcher", {}))
        except DataError:
            watcher = Watcher(self.watcher.config)
        watcher.went_back(to, now)  # what is logged at this step is still of the policy that was left
        self.watcher, self.rolled_back = watcher, True
        self._recent, self._due = {}, None
        self._quiet_until = now + self.config.within

    def _report(self, step: int, alarms: Sequence[Alarm]) -> None:
        """Tell the alarms of a line, keep them for `within` steps, and decide whether something is due."""
        for alarm in alarms:
            logger.warning("sentinel: %s", alarm.sentence)
            self.tell({"event": "alarm", **alarm.to_dict(), "message": alarm.sentence})
        if step >= self._quiet_until:
            self._recent.update({alarm.sign: alarm for alarm in alarms})
        self._recent = {
            sign: alarm for sign, alarm in self._recent.items() if step - alarm.step < self.config.within
        }
        if alarms:
            self._decide(step)

    def _decide(self, step: int) -> None:
        families = {alarm.family for alarm in self._recent.values()}
        if self.config.action == "log" or len(families) < self.config.agree:
            return
        alarms = sorted(self._recent.values(), key=lambda alarm: alarm.step)
        action = "stop" if self.config.action == "rollback" and self.rolled_back else self.config.action
        self._due = Due(
            action=action,
            since=min(alarm.since for alarm in alarms),
            reason=" ".join(alarm.sentence for alarm in alarms),
        )
        self._recent = {}
        self._quiet_until = step + self.config.within


def _check_keys(where: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    for key in given:
        if key not in names:
            raise ConfigError(
                f"{where}.{key} is no setting.{nearest(str(key), names)} Settings: {', '.join(names)}"
            )


def _post(url: str, event: dict[str, Any]) -> None:
    # Not httpx, which logs the whole URL at level INFO.
    request = urllib.request.Request(  # noqa: S310 - AlarmPolicyConfig has checked that it is http
        url, json.dumps(event).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    try:
        urllib.request.build_opener(_NoRedirect).open(request, timeout=WEBHOOK_SECONDS).close()
    except urllib.error.HTTPError as error:
        logger.warning("sentinel: the webhook answered %d", error.code)
    except (OSError, ValueError) as error:  # their texts may hold the URL
        logger.warning("sentinel: the webhook cannot be reached (%s)", type(error).__name__)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Sends nothing to an address that the user did not give; the redirect is reported as a failed answer."""

    def redirect_request(self, *_: Any) -> None:
        return None
