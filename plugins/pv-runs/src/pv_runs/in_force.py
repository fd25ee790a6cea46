"""Settings by step: the values that a run was trained with, where its attempts differ.

A resume may change the config, and files, packages and GPUs may change behind it. `pv-rl train` writes what each
attempt changed into run.json (`history`); the metrics files tell the steps that each attempt trained.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

__all__ = ["CONTENT", "LAUNCHER", "VERSION", "Phases", "describe", "in_force", "is_setting"]

CONTENT, VERSION, LAUNCHER = "content of ", "version of ", "launcher"
"""Keys of changes outside the config: a file's content (its config key follows), a package, what started verl."""
OURS, ALONE = "pv-rl train", "verl without pv-rl train"
NO_SETTING = re.compile(
    r"(?:trainer\.(?:total_training_steps|total_epochs|(?:save|test)_freq|val_\w+|logger|log_val_generations|resume_mode"
    r"|max_\w+_to_keep|nnodes|n_gpus_per_node|project_name|experiment_name|balance_batch|device|\w+_dir)"
    r"|(?:.*[._])?(?:seed|dir)"
    r"|(?:hydra|ray_kwargs|launch\.(?:env|prepare)|cluster|sentinel|global_profiler|run_dir)(?:\..+)?"
    r"|.*\.(?:\w*micro_batch_size(?:_per_gpu)?|\w*max_token_len_per_gpu|\w*use_dynamic_bsz|gpu_memory_utilization|max_num_\w+"
    r"|\w+_parallel_size|fsdp_size|\w*_offload|enable_(?:gradient_checkpointing|chunked_prefill|prefix_caching)"
    r"|enforce_eager|free_cache_engine|\w*num_workers|profiler\..+))"
)
"""Keys that decide how long, how fast, where and with which seed a run trains. pv-rl and verl normalise the loss over
the whole mini-batch, however many GPUs and micro-batches it is cut into."""
STEPS = "trainer.total_training_steps"
MOST, MOST_KEYS = 1000, 500
"""Entries of a history and changed keys that are read: a run.json is not trusted."""

Phases = list[tuple[int | None, str]]
"""Values in their order, each with the first step that was trained with it; None where the step is not known."""


def is_setting(key: str, config: Mapping[str, str]) -> bool:
    """Whether runs that differ in `key` have learned under different settings.

    A package's version is shown and does not tell settings apart. The last step does where the learning rate depends on
    it.

    Args:
        key: of the config, or one that begins with `CONTENT` or `VERSION`, or `LAUNCHER`.
        config: by dotted key.
    """
    if key == STEPS:
        return any(
            (name.endswith(".optim.lr_warmup_steps_ratio") and value not in ("0", "0.0", "null"))
            or (
                name.endswith((".optim.lr_scheduler_type", ".optim.warmup_style"))
                and value not in ("constant", "null")
            )
            for name, value in config.items()
        )
    return not key.startswith(VERSION) and not NO_SETTING.fullmatch(key)


def in_force(
    about: Mapping[str, Any], starts: Mapping[int, int], config: Mapping[str, str]
) -> dict[str, Phases]:
    """The values of each key that some attempt changed, with their first steps.

    A key with one phase was changed before any step was trained.

    Args:
        about: what run.json says; not trusted.
        starts: by attempt, the first step that it trained and that no later attempt repeated.
        config: the first attempt's, by dotted key.

    Example: attempt 2 begins at step 41 with `recipe.eta=0.3`: `{"recipe.eta": [(1, "0.6"), (41, "0.3")]}`.
    """
    history = dict(_history(about))
    known = {number: first for number, (_, first) in history.items()}
    changes = {number: changed for number, (changed, _) in history.items()} or _of_overrides(about, config)
    since = min(known, default=MOST)  # versions before wrote no history
    alone = {n for n, step in starts.items() if n >= since and (n not in known or step > (known[n] or step))}
    numbers = sorted({*changes, *starts})
    found: dict[str, Phases] = {}
    for key in islice(dict.fromkeys(key for changed in changes.values() for key in changed), MOST_KEYS):
        first = value = next(changed[key][0] for _, changed in sorted(changes.items()) if key in changed)
        trained: Phases = []
        for number in numbers:
            value = changes.get(number, {}).get(key, ("", value))[1]
            trained += [(starts[number], value)] if number in starts else []
        found[key] = _joined(trained or [(None, value)]) if known else [(None, first), (None, value)]
    if alone:
        found[LAUNCHER] = _joined(
            [(step, ALONE if n in alone else OURS) for n, step in sorted(starts.items())]
        )
    return found


def describe(phases: Phases) -> str:
    """`0.6 then 0.3 from step 41`."""
    (_, first), *others = phases
    return " then ".join(
        [first, *(f"{value} from {'a resume' if step is None else f'step {step}'}" for step, value in others)]
    )


def _joined(values: list[tuple[int | None, str]]) -> Phases:
    return [one for place, one in enumerate(values) if not place or one[1] != values[place - 1][1]]


Changed = dict[str, tuple[str, str]]


def _history(about: Mapping[str, Any]) -> Iterator[tuple[int, tuple[Changed, int | None]]]:
    """By attempt: what it changed, as (before, after), and its first step. What is no entry is left out."""
    entries = about.get("history")
    for entry in entries[:MOST] if isinstance(entries, list) else ():
        if (
            not isinstance(entry, dict)
            or type(entry.get("attempt")) is not int
            or not 0 < entry["attempt"] <= MOST
        ):
            continue
        given, first = entry.get("changed"), entry.get("first_step")
        changed = {
            key: (str(pair[0]), str(pair[1]))
            for key, pair in (given.items() if isinstance(given, dict) else ())
            if isinstance(pair, list) and len(pair) == 2
        }
        yield entry["attempt"], (changed, first if type(first) is int else None)


def _of_overrides(about: Mapping[str, Any], config: Mapping[str, str]) -> dict[int, Changed]:
    """A run.json of an earlier version has the overrides of all resumes in one list, and no steps."""
    overrides = about.get("overrides")
    given = (
        [str(one).lstrip("+").partition("=") for one in overrides[:MOST] if one]
        if isinstance(overrides, list)
        else []
    )
    return {2: {key: (now, value) for key, _, value in given if (now := config.get(key, "none")) != value}}
