"""Notes of a report: what a reader has to know beside the numbers, a sentence or two each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pv_judge.pages.text import plain, plural
from pv_runs.in_force import describe, is_setting
from pv_runs.measures import BALANCED, HELD_OUT, MEASURES, Measure
from pv_runs.report.runs import Run
from pv_runs.report.settings import Result, Setting, differences

__all__ = ["describe_end", "take_notes"]

FEW = 3
"""Seeds. Of fewer, an interval says little."""
NAMED = 5
"""Things that a note lists by name."""


def take_notes(settings: Sequence[Setting], keys: Mapping[Measure, str]) -> Iterator[str]:
    """In the order of their weight.

    Args:
        settings: all of the report.
        keys: the measures that have data, with verl's key of each.
    """
    for setting in settings:
        yield from _of_setting(setting)
    runs = [result.run for setting in settings for result in setting.results]
    yield from _of_attempts(runs)
    if any(setting.averaged and len(setting.averaged) < FEW for setting in settings):
        yield (
            f"Settings with fewer than {FEW} seeds: with 2 values an interval is 12.7 standard errors to each side, "
            "with 1 value there is none. Compare the single runs."
        )
    steps = sorted({setting.step for setting in settings if setting.step is not None})
    if len(steps) > 1:
        yield (
            f"Settings ended at different steps ({_list(steps)}), so their final values come after different amounts "
            "of training."
        )
    yield from _of_measures(runs, keys)
    versions = {tuple(sorted(run.versions.items())) for run in runs if run.versions}
    if len(versions) > 1:
        yield f"Runs were made with different versions: {_list(sorted(map(_version, versions)))}."


def describe_end(run: Run) -> str:
    """How a run ended and where: `failed at step 80`."""
    step = run.log.last_step
    return f"{run.state}, no step logged" if step is None else f"{run.state} at step {step}"


def _of_setting(setting: Setting) -> Iterator[str]:
    others = [f"run {result.run.name} ({_why(result, setting)})" for result in setting.others]
    if others:
        rest = "" if setting.averaged else " This setting has no run to average."
        yield f"{setting.label}: not averaged: {_list(others)}.{rest}"
    seeds = Counter(result.run.seed for result in setting.averaged)
    twice = [f"seed {seed or 'unknown'} in {count} runs" for seed, count in seeds.items() if count > 1]
    if twice:
        yield (
            f"{setting.label}: {_list(twice)}, counted as separate seeds in the mean. If these runs repeat "
            "each other, the interval is too narrow."
        )
    validated = {_validated(result.run) for result in setting.averaged}
    if len(validated) > 1:
        yield f"{setting.label}: the last validation is not at the same step in all runs: {_list(sorted(validated))}."
    if differ := differences([result.run for result in setting.averaged]):
        yield f"{setting.label}: its runs differ in more than the seed: {_list(differ)}. --by KEY tells them apart."


def _of_attempts(runs: Sequence[Run]) -> Iterator[str]:
    """What changed within runs, and whether that makes a setting of its own; runs that changed alike in one note."""
    settings: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for run in runs:
        for key, phases in run.in_force.items():
            if len(phases) > 1:
                found = settings if is_setting(key, run.config) else others
                found.setdefault(f"{key} is {describe(phases)}", []).append(run.name)
        if run.rollbacks:
            back = [f"at step {step} to the checkpoint of step {to:g}" for step, to in run.rollbacks.items()]
            yield (
                f"run {run.name} was rolled back by its sentinel {_list(back)}, with a lower learning rate from there "
                "on. It is averaged with runs that were not, since the sentinel is part of the setting."
            )
    for text, names in settings.items():
        yield f"Trained under more than one setting: {plain(text)} in run {_list(names)}."
    for text, names in others.items():
        yield f"Changed between attempts, which does not tell settings apart: {plain(text)} in run {_list(names)}."


def _why(result: Result, setting: Setting) -> str:
    run = result.run
    if run.state in ("finished", "unknown") and run.log.last_step is not None:
        return f"{describe_end(run)} of {setting.step}"
    return f"{describe_end(run)}: {run.error}" if run.error else describe_end(run)


def _validated(run: Run) -> int:
    """Step of the last validation, -1 if there was none."""
    return max(
        (max(run.log.series[name]) for name in HELD_OUT.values() if name in run.log.series), default=-1
    )


def _of_measures(runs: Sequence[Run], keys: Mapping[Measure, str]) -> Iterator[str]:
    for measure, key in keys.items():
        if key in measure.keys[1:] and any(measure.keys[0] in run.log.series for run in runs):
            yield f"{measure.title} is read from {key}, because not all runs have {measure.keys[0]}."
        lack = [run.name for run in runs if key not in run.log.series and run.log.last_step is not None]
        if lack and any(
            other in run.log.series for run in runs if run.name in lack for other in measure.keys
        ):
            yield f"{measure.title} is read from {key}, which these runs do not have: {_list(lack)}."
        broken = {
            run.name: sum(not math.isfinite(value) for value in run.log.series.get(key, {}).values())
            for run in runs
        }
        named = [f"{plural(count, 'step')} of run {name}" for name, count in broken.items() if count]
        if named and key != BALANCED:
            yield f"{measure.title}: NaN, infinite or null in {_list(named)}; these steps are left out."
    missing = [measure.title for measure in MEASURES if measure not in keys]
    if missing:
        yield f"No run has: {'; '.join(missing)}. The report has no column and no panel for them."
    for name in HELD_OUT:
        sources = {source for run in runs for source in run.log.sources if source.endswith(name)}
        if len(sources) > 1:
            yield (
                f"Held out, {name} proofs: the plain mean over {plural(len(sources), 'data source')}, "
                f"{_list(sorted(sources))}."
            )


def _version(versions: tuple[tuple[str, str], ...]) -> str:
    return " with ".join(f"{package} {version}" for package, version in versions)


def _list(things: Sequence[object]) -> str:
    """The first few by name."""
    named = ", ".join(plain(thing) for thing in things[:NAMED])
    return named if len(things) <= NAMED else f"{named} and {len(things) - NAMED} more"
