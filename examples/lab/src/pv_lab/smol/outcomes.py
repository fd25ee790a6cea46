"""Outcomes of the study's runs: held-out accuracy of each validation, training metrics, and the sentinel's alarms."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pv_judge.extras import needs
from pv_judge.rowfiles import open_rows
from pv_lab.smol.wording import TASK
from pv_rl.errors import DataError
from pv_rl.verdict import parse_verdict
from pv_runs import metric_names
from pv_runs.hydra_record import look_up
from pv_runs.report.runs import Run, read_run
from pv_runs.run_folder import find_runs
from pv_runs.sentinel import SentinelConfig, Watcher

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SETS", "read_study", "validation_rows"]

SETS = ("chain2", "chain3", "long", "story", "equation", "processbench")
LAST = 5
"""Steps at each end of a run over which a metric of training is a mean."""
TRAINING = {
    "reward": metric_names.SCORE,
    "length": "response_length/mean",
    "vetoed": metric_names.VETOED,
    "no_verdict": metric_names.VERDICT_MISSING,
    "seconds": "timing_s/step",
}
"""Metrics of training by the report's name."""
FILE = re.compile(r"(\d+)\.jsonl")
STARTED = re.compile(r"/starts/([^/]+)/checkpoints/")
CHANGES = re.compile(r"-seed-\d+-(.+)$")
SHARE = re.compile(r"/p(\d+)/*$")


@dataclass(kw_only=True)
class Proof:
    """A held-out proof and the votes of one validation on it."""

    name: str
    label: bool
    votes: list[bool | None]


def read_study(folder: Path, data: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read all runs of a study.

    Args:
        folder: of `pv_lab.smol.runs`, or its folder `runs`.
        data: of `pv_lab.smol.data`, with the held-out proofs.

    Returns:
        A row for each run: start, share, mode, veto, changes (`--rl`, as the run's name has them), seed, state, steps,
        the alarms of the sentinel and, of each of `TRAINING`, the means of the first and the last steps. A row for
        each run, validation and set of proofs.

    Raises:
        DataError: there is no run, or a validation has none of the proofs.
    """
    import pandas as pd

    proofs = _read_proofs(data)
    runs, validations = [], []
    for path in find_runs(folder / "runs" if (folder / "runs").is_dir() else folder):
        run = read_run(path, path.name, lambda _: True)
        about = _about(run)
        runs.append(
            about
            | {"state": run.state, "steps": run.log.last_step or 0}
            | dict(_training(run))
            | _alarms(run)
        )
        validations += [about | row for row in validation_rows(path / "validation", proofs)]
    if not validations:
        raise DataError(
            f"{folder} has no validation: none of its {len(runs)} runs has a file validation/STEP.jsonl"
        )
    return pd.DataFrame(runs), pd.DataFrame(validations)


def _about(run: Run) -> dict[str, Any]:
    """Setting and seed, from the run's own config."""
    start, share = (look_up(run.config, key) or "" for key in ("model_path", "data_dir"))
    named, percent = STARTED.search(start), SHARE.search(share)
    if named is None or percent is None:
        raise DataError(
            f"{run.name} is no run of pv_lab.smol.runs: its model_path is {start!r} and its data_dir {share!r}. Move "
            "it out of the folder"
        )
    reward = look_up(run.config, "reward.custom_reward_function.name")
    return {
        "run": run.name,
        "start": named[1],
        "share": int(percent[1]),
        "mode": run.mode,
        "veto": reward == "verdict_fluency",
        "changes": changes[1] if (changes := CHANGES.search(run.name)) else "",
        "seed": int(run.seed or 0),
    }


def _training(run: Run) -> Iterator[tuple[str, float]]:
    for name, key in TRAINING.items():
        series = run.log.series.get(key, {})
        values = [value for step, value in sorted(series.items()) if step > 0 and math.isfinite(value)]
        for end, part in (("first", values[:LAST]), ("last", values[-LAST:])):
            yield f"{name}_{end}", sum(part) / len(part) if part else math.nan


def _alarms(run: Run) -> dict[str, Any]:
    """What the sentinel reports of the run's metrics, fed step by step."""
    prompts, responses = (
        int(look_up(run.config, key) or 0) for key in ("data.train_batch_size", "actor_rollout_ref.rollout.n")
    )
    watcher, by_step = Watcher(SentinelConfig(responses=prompts * responses)), defaultdict(dict)
    for key, series in run.log.series.items():
        for step, value in series.items():
            by_step[step][key] = value
    found = watcher.validated(0, by_step.pop(0, {}))
    found += [alarm for step in sorted(by_step) for alarm in watcher.observe(step, by_step[step])]
    return {"alarms": len(found), "signs": " ".join(sorted({alarm.sign for alarm in found}))}


def _read_proofs(data: Path) -> dict[str, tuple[str, bool]]:
    """Set and label of each held-out proof, by the user's message."""
    for file in sorted(data.glob("p*/test.parquet")):
        rows = open_rows(file).rows(["data_source", "prompt", "reward_model"])
        return {
            row.values["prompt"][-1]["content"]: (
                row.values["data_source"].partition("/")[0],
                row.values["reward_model"]["ground_truth"] == "True",
            )
            for row in rows
        }
    raise DataError(f"{data} has no p50/test.parquet. Give the folder of pv_lab.smol.data as --data")


def validation_rows(folder: Path, proofs: Mapping[str, tuple[str, bool]]) -> Iterator[dict[str, Any]]:
    """A row for each step and set: accuracy on right and wrong proofs, both with their mean, its interval over proofs,
    AUROC, share without a verdict, mean characters of a trace, and proofs.

    Args:
        folder: with STEP.jsonl, as verl dumps a validation.
        proofs: set and label by the user's message.
    """
    files = [(int(match[1]), file) for file in folder.glob("*.jsonl") if (match := FILE.fullmatch(file.name))]
    for step, file in sorted(files):
        votes: dict[str, Proof] = {}
        characters: dict[str, list[int]] = defaultdict(list)
        for prompt, output in _read_dump(file):
            message = _message(prompt)
            if message not in proofs:
                raise DataError(
                    f"{file} has a proof that the held-out files of --data do not: {message[:80]!r}"
                )
            name, label = proofs[message]
            proof = votes.setdefault(message, Proof(name=name, label=label, votes=[]))
            proof.votes.append(parse_verdict(output))
            characters[name].append(len(output))
        for name in SETS:
            if part := [proof for proof in votes.values() if proof.name == name]:
                mean = sum(characters[name]) / len(characters[name])
                yield (
                    {"step": step, "set": name} | _measures(part) | {"characters": mean, "proofs": len(part)}
                )


def _read_dump(file: Path) -> list[tuple[str, str]]:
    """Prompt and answer of each line; empty if the run was cut while verl wrote it."""
    found = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                found.append((str(row["input"]), str(row["output"])))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                if not line.endswith(b"\n"):
                    return []
                raise DataError(
                    f"line {number} of {file} is not what verl dumps, an object with input and output: {error!r}. "
                    "Remove the file, or move the run out of the folder"
                ) from error
    return found


def _message(prompt: str) -> str:
    """The user's message in a prompt that verl decoded, whatever chat template is around it."""
    begin = prompt.find(TASK)
    end = max(prompt.rfind("\nassistant"), prompt.rfind("<|im_end|>"))
    return prompt[begin : end if end > begin >= 0 else None].rstrip()


def _measures(proofs: Sequence[Proof]) -> dict[str, float]:
    with needs("pv_eval", "an interval over proofs", "pip install ./plugins/pv-data ./plugins/pv-eval"):
        from pv_eval import Pair, Vote, check, evaluate

    pairs, votes = [], []
    for number, proof in enumerate(proofs):
        own = {"pair_id": str(number), "question_id": str(number)}
        pairs.append(Pair(**own, label=proof.label))
        votes += [Vote(**own, sample=sample, verdict=vote) for sample, vote in enumerate(proof.votes)]
    found = evaluate(check(pairs, votes))
    balanced = found.metrics["balanced_accuracy"]
    return {
        "right": found.metrics["accuracy_right"].value,
        "wrong": found.metrics["accuracy_wrong"].value,
        "balanced": balanced.value,
        "balanced_low": balanced.low,
        "balanced_high": balanced.high,
        "auroc": found.ranking["votes"].auroc.value,
        "no_verdict": found.metrics["missing"].value,
    }
