"""Data files: columns, labels, rows for a batch, and prompts that are too long.

Rows are read for up to `BUDGET_S` seconds a file; what is behind them is then not checked, and the finding says so.
"""

from __future__ import annotations

import bisect
import functools
import glob
import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pv_doctor.reward import check_reward
from pv_judge.pages.text import plural
from pv_judge.rowfiles import open_rows
from pv_rl.errors import PvRlError
from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import value
from pv_rl.rewards.base import LABELS
from pv_rl.rewards.named import plain
from pv_runs.preflight.findings import note, right, wrong
from pv_runs.preflight.machine import Machine
from pv_runs.preflight.model import model_folder

__all__ = ["check_data"]

SUFFIXES = (".parquet", ".json", ".jsonl")
"""What verl reads (verl/utils/dataset/rl_dataset.py:162)."""
BUDGET_S = 4.0
SHOWN = 3
KEPT = 64
"""Prompts whose tokens may be counted. Behind them, tokens are estimated from the characters."""
LONGEST_TOKEN = 16
"""Characters of a token, at most, for a guess without the tokenizer."""


@dataclass(kw_only=True)
class Rows:
    """What was read of a file."""

    path: Path
    count: int = 0
    complete: bool = True
    labels: Counter[object] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """One text a kind of fault."""
    lengths: list[int] = field(default_factory=list)
    """Characters of each prompt."""
    longest: list[tuple[int, int, Any]] = field(default_factory=list)
    """A heap of the `KEPT` longest prompts: characters, number of the row, messages."""


def check_data(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Check the files of `data.train_files` and `data.val_files`."""
    if value(config, "data.custom_cls.path"):
        yield note("data.custom_cls reads the data; its files are not checked")
        return
    for key in ("data.train_files", "data.val_files"):
        given: Any = value(config, key)
        names = [given] if isinstance(given, str) else [str(one) for one in given or ()]
        if not names:
            yield wrong(
                f"{key} is empty",
                f"set {key}, or data_dir=... to a folder with train.parquet and test.parquet",
            )
            continue
        yield from _check_files(
            config, machine, key, [file for one in names for file in _files(one, machine)]
        )
    if value(config, "data.train_files") == value(config, "data.val_files"):
        yield note("data.train_files and data.val_files are the same: validation shows what was trained on")


def _files(name: str, machine: Machine) -> list[str]:
    """The files of a pattern, which verl passes on to `datasets`; the name itself if it is none."""
    path = str(machine.cwd / Path(name).expanduser())
    return (sorted(glob.glob(path)) if "://" not in name and not Path(path).exists() else []) or [name]


def _check_files(config: DictConfig, machine: Machine, key: str, names: Sequence[str]) -> Iterator[Finding]:
    read: list[Rows] = []
    for name in names:
        path = machine.cwd / Path(name).expanduser()
        if "://" in name:
            yield note(f"{key}: {name} is left to verl")
        elif not path.is_file() and value(config, "launch.prepare") is not None:
            yield right(f"{key}: launch.prepare writes {path.name}")
        elif not path.is_file():
            yield wrong(
                f"{key}: there is no file {name}", "correct it, or data_dir=..., which names the folder"
            )
        elif path.suffix not in SUFFIXES:
            yield wrong(
                f"{key}: verl reads {', '.join(SUFFIXES)}, not {name}", "write the rows in one of these"
            )
        else:
            try:
                kind = check_reward(config, build_all=True)
                rows = _read(path, path.stat().st_mtime_ns, str(value(config, "data.prompt_key")), kind)
            except PvRlError as error:
                yield wrong(f"{key}: {error}", "write the file again")
                continue
            for fault in rows.faults:
                yield wrong(f"{key}: {fault}", "correct the file (its columns: docs/guides/recipes.md)")
            if not rows.faults:
                read.append(rows)
    if len(read) == len(names):
        yield from _check_rows(config, machine, key, read)


def _check_rows(config: DictConfig, machine: Machine, key: str, files: Sequence[Rows]) -> Iterator[Finding]:
    total = sum(one.count for one in files)
    limit = value(config, f"data.{'train' if 'train' in key else 'val'}_max_samples")
    used = min(total, limit) if isinstance(limit, int) and limit > 0 else total
    whole = all(one.complete for one in files)
    over, sure, how = _too_long(config, machine, files)
    longest, filtered = (
        value(config, "data.max_prompt_length"),
        bool(value(config, "data.filter_overlong_prompts")),
    )
    kept = used - over if filtered and sure else used
    if whole and kept < (needed := _rows_needed(config, key)):
        dropped = (
            f" after {over} with longer prompts than data.max_prompt_length={longest}" if kept < used else ""
        )
        yield wrong(
            f"{key} has {plural(kept, 'row')}{dropped}, and a batch takes {needed}",
            "add rows, or lower data.train_batch_size" if "train" in key else "add rows",
        )
        return
    if over:
        text = (
            f"{key}: about {over} of {plural(total, 'prompt')} are longer than "
            f"data.max_prompt_length={longest} ({how})"
        )
        if filtered:
            yield note(f"{text}; verl leaves them out")
        else:
            remedy = "set data.filter_overlong_prompts=True, or raise data.max_prompt_length"
            yield wrong(f"{text}, and verl cuts their beginning off", remedy)
    labels = sum((one.labels for one in files), Counter())
    counts = ", ".join(f"{label}: {count}" for label, count in sorted(labels.items(), key=str))
    if len(labels) == 1 and total > 1 and isinstance(next(iter(labels)), bool):
        yield note(
            f"{key}: every label is {next(iter(labels))}", "check that rows of the other class are there"
        )
    part = "" if whole else f" (the first that could be read in {BUDGET_S:g} s)"
    yield right(f"{key}: {plural(total, 'row', ',')}{part}" + (f", labels {counts}" if labels else ""))


def _rows_needed(config: DictConfig, key: str) -> int:
    """Rows of a batch that verl takes from the file; verl fetches one at a time where it may have to refill."""
    if "train" not in key:
        return 1
    exact = value(config, "trainer.use_v1") and (
        value(config, "trainer.v1.trainer_mode") != "sync"
        or value(config, "algorithm.filter_groups.enable")
        or value(config, "trainer.v1.sampler.sync_refill_failed_groups")
    )
    batch: Any = value(config, "data.gen_batch_size") or value(config, "data.train_batch_size")
    return 1 if exact or not isinstance(batch, int) else batch


@functools.lru_cache(maxsize=8)
def _read(path: Path, _changed: int, prompt_key: str, label_kind: str) -> Rows:
    file, rows = open_rows(path), Rows(path=path)
    columns, names = [prompt_key, "data_source", "reward_model"], list(file.kinds)
    if missing := [one for one in columns if one not in names]:
        rows.faults.append(
            f"{path} has no column {' and none named '.join(missing)}; it has {', '.join(names)}"
        )
        return rows
    read_label: Callable[[Any], Any] = LABELS[label_kind]  # pyright: ignore[reportArgumentType]
    seen: dict[str, list[int]] = {}
    deadline = time.monotonic() + BUDGET_S
    for row in file.rows(columns):
        for fault in _row_faults(row.values, prompt_key, read_label, rows):
            seen.setdefault(fault, []).append(row.number)
        rows.count += 1
        if time.monotonic() > deadline:
            rows.complete = False
            break
    for fault, numbers in list(seen.items())[:SHOWN]:
        rows.faults.append(f"{file.unit} {numbers[0]} of {path} ({len(numbers)} in all): {fault}")
    rows.longest.sort()
    return rows


def _row_faults(
    values: dict[str, Any], prompt_key: str, read_label: Callable[[Any], Any], rows: Rows
) -> Iterator[str]:
    prompt, about = values[prompt_key], values["reward_model"]
    if not values["data_source"] and values["data_source"] != 0:
        yield "data_source is empty"
    if not isinstance(about, dict) or "ground_truth" not in about:
        yield "reward_model has no ground_truth"
    else:
        try:
            rows.labels[_shown(read_label(about["ground_truth"]))] += 1
        except PvRlError as error:
            yield str(error)
    if not isinstance(prompt, list) or not prompt:
        what = f"a {type(prompt).__name__}" if prompt else "empty"
        yield f"{prompt_key} is {what}; verl needs a list of messages with role and content"
        return
    if not all(_is_message(one) for one in prompt) or not any(one.get("content") for one in prompt):
        yield f"{prompt_key} has a message without role or content"
        return
    length = sum(len(str(one.get("content") or "")) for one in prompt)
    rows.lengths.append(length)
    (heapq.heappush if len(rows.longest) < KEPT else heapq.heappushpop)(
        rows.longest, (length, rows.count, prompt)
    )


def _is_message(message: object) -> bool:
    """An empty content is one (a system message that turns off the model's own), a call of tools needs none."""
    return (
        isinstance(message, dict)
        and bool(message.get("role"))
        and (message.get("content") is not None or bool(message.get("tool_calls")))
    )


def _shown(label: object) -> object:
    return label if isinstance(label, bool) else "text" if isinstance(label, str) else "number"


def _too_long(config: DictConfig, machine: Machine, files: Sequence[Rows]) -> tuple[int, bool, str]:
    """Prompts that are longer than `data.max_prompt_length`, whether tokens were counted, and how it was found.

    Of the longest prompts, the first that is too long is searched by halving: a prompt with more characters is taken to
    have more tokens.
    """
    limit: Any = value(config, "data.max_prompt_length")
    if not isinstance(limit, int):
        return 0, False, ""
    count = _counter(config, machine)
    if count is None:
        over = sum(length > limit * LONGEST_TOKEN for one in files for length in one.lengths)
        return over, False, "by their characters"
    over = 0
    for one in files:
        prompts = one.longest
        fitting = bisect.bisect_right(prompts, limit, key=lambda longest: count(longest[2]))
        if fitting or len(prompts) == len(one.lengths):
            over += len(prompts) - fitting
        else:
            ratio = prompts[0][0] / count(prompts[0][2])  # characters of a token
            over += sum(length > ratio * limit for length in one.lengths)
    return over, True, "by the model's tokenizer"


def _counter(config: DictConfig, machine: Machine) -> Callable[[Any], int] | None:
    """Counts the tokens of a prompt as verl does; None where the model's tokenizer is not on this machine."""
    folder = model_folder(config, machine)
    if folder is None:
        return None
    named: Any = value(config, "actor_rollout_ref.model.tokenizer_path") or folder
    try:
        tokenizer = _tokenizer(str(named))
        extra: Any = plain(config.data.get("apply_chat_template_kwargs") or {})

        def count(prompt: Any) -> int:
            text = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False, **extra)
            return len(tokenizer(text, add_special_tokens=False)["input_ids"])

        count([{"role": "user", "content": "a"}])
        return count
    except Exception:  # noqa: BLE001 - a tokenizer that only its own code reads, or without a chat template
        return None


@functools.lru_cache(maxsize=2)
def _tokenizer(folder: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
