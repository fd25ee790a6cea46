"""All checks of a run, in the order in which they are printed."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pv_judge.hydra_errors import unreadable
from pv_rl.errors import ConfigError, PvRlError
from pv_rl.hookspecs import Finding
from pv_runs.preflight.data import check_data
from pv_runs.preflight.findings import note, right, wrong
from pv_runs.preflight.folders import check_folders
from pv_runs.preflight.gpus import check_gpus
from pv_runs.preflight.machine import Machine
from pv_runs.preflight.model import check_model
from pv_runs.preflight.packages import check_packages
from pv_runs.preflight.ports import check_ports
from pv_runs.preflight.secrets import check_secrets
from pv_runs.preflight.supervised import check_conversations, check_supervised, is_supervised
from pv_runs.preflight.values import check_values
from pv_runs.recipes import check
from pv_runs.weight_metrics import remarks

__all__ = ["Checks", "MoreChecks", "examine", "faults"]

Checks = Mapping[str, Sequence[Finding]]
"""Findings by the name of the check."""

MoreChecks = Mapping[str, Callable[[DictConfig], Iterable[Finding]]]

SETTINGS = "settings"
UNREAD = "set this value"
UNSET = re.compile(r"needs the environment variable (\w+), which is not set")
CHECKS: Mapping[str, Callable[[DictConfig, Machine], Iterable[Finding]]] = {
    "secrets": check_secrets,
    "packages": check_packages,
    "gpus": check_gpus,
    "model": check_model,
    "data": check_data,
    "ports": check_ports,
}
SUPERVISED: Mapping[str, Callable[[DictConfig, Machine], Iterable[Finding]]] = {
    "packages": check_packages,
    "gpus": check_gpus,
    "model": check_model,
    "data": check_conversations,
}
"""The same of a run without rollouts and rewards."""


def examine(
    config: DictConfig,
    machine: Machine,
    overrides: Sequence[str] | None = None,
    *,
    only: Sequence[str] = (),
    runs: int = 1,
    more: MoreChecks = MappingProxyType({}),
) -> dict[str, list[Finding]]:
    """Run every check. One that raises is a finding and stops no other.

    Args:
        config: composed, with `run_dir` set.
        machine: where the run starts.
        overrides: Hydra's, with which it was composed; None: those of the command line, where Hydra runs.
        only: names of checks; none for all.
        runs: of the sweep, whose checkpoints share a disk.
        more: further checks, of the config alone.
    """
    with _quietly():
        return _examine(config, machine, overrides, only, runs, more)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings of verl, which is imported here and prints them again in the run's own process."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


def _examine(
    config: DictConfig,
    machine: Machine,
    overrides: Sequence[str] | None,
    only: Sequence[str],
    runs: int,
    more: MoreChecks,
) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    checks = CHECKS
    if is_supervised(config):
        checks, more = SUPERVISED, {}
        found[SETTINGS] = _guarded(lambda: check_supervised(config))
    elif not only or SETTINGS in only:
        found[SETTINGS] = [
            *_guarded(lambda: check_values(config, machine)),
            *_guarded(lambda: _check_settings(config, overrides)),
        ]
    for name, run in checks.items():
        if not only or name in only:
            found[name] = _guarded(lambda run=run: run(config, machine))
    if not only or "folders" in only:
        found["folders"] = _guarded(lambda: check_folders(config, machine, runs))
    for name, extra in more.items():
        found[name] = _guarded(lambda extra=extra: extra(config))
    first = {one.text for one in found.get(SETTINGS, ()) if one.state == "wrong"}
    if first:  # a check that reads the same value has found it too
        for name in found.keys() - {SETTINGS}:
            own = [one for one in found[name] if not any(text in one.text for text in first)]
            found[name] = [one for one in own if one.remedy != UNREAD]
    return found


def faults(found: Checks) -> list[str]:
    """One line for each finding that stops the run: what is wrong, and the remedy."""
    return [
        f"{name}: {one.text.rstrip('.')}" + (f". Fix: {one.remedy}" if one.remedy else "")
        for name, findings in found.items()
        for one in findings
        if one.state == "wrong"
    ]


def _guarded(run: Callable[[], Iterable[Finding]]) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(run())
    except PvRlError as error:
        unset = UNSET.search(str(error))
        remedy = f"export {unset[1]}=..." if unset else UNREAD if "cannot be read" in str(error) else ""
        found.append(wrong(str(error), remedy))
    except OmegaConfBaseException as error:
        found.append(wrong(unreadable(error), UNREAD))
    except Exception as error:  # noqa: BLE001 - a check that fails by itself stops no run
        found.append(note(f"could not be checked ({type(error).__name__}: {error})"))
    return found


def _check_settings(config: DictConfig, overrides: Sequence[str] | None) -> Iterator[Finding]:
    """Everything that the config alone decides, by pv-rl's checks and by verl's."""
    from pv_runs.recipes.validation import validate

    check(config, overrides=overrides)
    validate(config)
    try:
        OmegaConf.resolve(config.copy())  # as verl does in its TaskRunner
    except OmegaConfBaseException as error:
        raise ConfigError(f"a value cannot be read: {unreadable(error)}") from error
    yield from (note(one) for one in remarks(config))
    yield right(f"verl accepts the config, {config.actor_rollout_ref.actor.loss_agg_mode}")
