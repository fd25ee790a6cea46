"""Preflight of `pv-rl train`: composes every run of the command, checks each, and prints what was found."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from omegaconf import OmegaConf
from rich.console import Console
from rich.markup import escape

from pv_judge.hydra_errors import unreadable
from pv_judge.pages.text import plural
from pv_rl.errors import ConfigError
from pv_rl.hookspecs import Finding
from pv_runs.preflight import Checks, Machine, MoreChecks, examine, faults, this_machine
from pv_runs.recipes import compose

__all__ = ["check_runs", "raise_faults", "show"]

MARKS = {"ok": "[green]ok   [/]", "note": "[yellow]note [/]", "wrong": "[red]wrong[/]"}
BASIC = "hydra._internal.core_plugins.basic_"
"""Hydra's own launcher and sweeper: all runs are known before the first, and start on this machine."""
ANYWHERE = ("settings", "secrets", "model", "data", "folders")
"""Checks that a machine can do from which a launcher starts runs on others."""


def check_runs(
    run: str, overrides: Sequence[str], *, sweep: bool, folder: Path | None, more: MoreChecks
) -> Checks:
    """Compose and check the run, or all runs of the sweep. Writes nothing and does not start Ray.

    Args:
        run: its name.
        overrides: Hydra's; with values to sweep over if `sweep`.
        sweep: whether there may be several runs.
        folder: of the run or the sweep; None: as `hydra.run.dir` or `hydra.sweep.dir` says.
        more: further checks of each config.

    Raises:
        ConfigError: a run cannot be composed; a key is misspelt for example.
    """
    fixed, swept = _split(overrides) if sweep else (list(overrides), [])
    first = compose(run, [*fixed, *(values[0] for values in swept)], with_hydra=True)
    hydra = first.hydra
    place = (folder or Path(str(hydra.sweep.dir if sweep else hydra.run.dir))).resolve()
    there = hydra.launcher["_target_"].startswith(BASIC)
    if sweep and hydra.sweeper["_target_"].startswith(BASIC):
        swept += _split(f"{key}={value}" for key, value in (hydra.sweeper.params or {}).items())[1]
        runs = [list(values) for values in itertools.product(*swept)]
    else:  # a sweeper that chooses values as it goes
        runs = [[values[0] for values in swept]]
    machines: dict[str, Machine] = {}
    results: list[tuple[str, Checks]] = []
    for number, values in enumerate(runs):
        config = compose(run, [*fixed, *values])
        OmegaConf.set_struct(config, False)
        config.run_dir = str(place / str(number) if sweep else place)
        same = f"{config.get('ray_kwargs')}{config.launch.env}"
        machines[same] = machine = machines.get(same) or this_machine(config, Path.cwd())
        only = () if there else ANYWHERE
        results.append(
            (
                " ".join(values),
                examine(config, machine, [*fixed, *values], only=only, runs=len(runs), more=more),
            )
        )
    return _merge(results)


def raise_faults(found: Checks) -> None:
    """Stop before anything starts.

    Raises:
        ConfigError: a finding is wrong; the text has all of them with their remedies.
    """
    if lines := faults(found):
        more = f"{len(lines)} problems would stop this run:\n" if len(lines) > 1 else ""
        raise ConfigError(more + "\n".join(lines))


def show(found: Checks, console: Console) -> bool:
    """Print a line for each finding, then the sum. Whether nothing is wrong."""
    for name, findings in found.items():
        for one in findings:
            remedy = f". [bold]Fix:[/] {escape(one.remedy)}" if one.remedy else ""
            text = escape("".join(c for c in " ".join(one.text.rstrip(".").split()) if c.isprintable()))
            console.print(f"{MARKS[one.state]} {name:9}{text}{remedy}", highlight=False)
    states = [one.state for findings in found.values() for one in findings]
    wrong = states.count("wrong")
    notes = f", {plural(states.count('note'), 'note')}" if "note" in states else ""
    console.print(f"{wrong} wrong{notes}: this run would fail." if wrong else f"Nothing wrong{notes}.")
    return not wrong


def _split(overrides: Iterable[str]) -> tuple[list[str], list[list[str]]]:
    """Overrides of one value, and for each sweep `key=a,b` the overrides `key=a` and `key=b`.

    Raises:
        ConfigError: Hydra cannot read one.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    fixed: list[str] = []
    swept: list[list[str]] = []
    for text in overrides:
        try:
            parsed = OverridesParser.create().parse_override(text)
            if parsed.is_discrete_sweep():
                swept.append([f"{parsed.get_key_element()}={one}" for one in parsed.sweep_string_iterator()])
            elif not parsed.is_sweep_override():
                fixed.append(text)
        except HydraException as error:
            raise ConfigError(unreadable(error)) from error
    return fixed, swept


def _merge(results: Sequence[tuple[str, Checks]]) -> Checks:
    """Findings of all runs: those that only some runs have name the values of these runs; of `ok`, the first run's."""
    (_, first), *others = results
    if not others:
        return first
    merged: dict[str, list[Finding]] = {}
    for check in dict.fromkeys(check for _, found in results for check in found):
        having: dict[Finding, list[str]] = {}
        for name, found in results:
            for one in found.get(check, ()):
                having.setdefault(one, []).append(name)
        for one, names in having.items():
            if one.state == "ok" and one not in first.get(check, ()):
                continue
            where = "" if one.state == "ok" or len(names) == len(results) else f"{names[0]}: "
            more = f" (and {len(names) - 1} more runs)" if where and len(names) > 1 else ""
            text = f"{where}{one.text}{more}"
            merged.setdefault(check, []).append(Finding(state=one.state, text=text, remedy=one.remedy))
    merged["sweep"] = [Finding(state="ok", text=f"{plural(len(results), 'run')} were composed and checked")]
    return merged
