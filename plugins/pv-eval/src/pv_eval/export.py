"""Export of a set as a task of other harnesses, lm-evaluation-harness and inspect_ai.

A folder for each harness has the verdict parser, and data, task and a description that are named for the task, so that
several tasks can share it. It needs none of our packages.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from pv_data.export.prompt import VerifierPrompt
from pv_eval.request import Sampling
from pv_eval.sets.base import EvalSet
from pv_judge.files import write_together
from pv_rl import verdict
from pv_rl.errors import ConfigError

__all__ = ["HARNESSES", "export_tasks"]


def export_tasks(
    found: EvalSet, out: Path, prompt: VerifierPrompt, sampling: Sampling, harnesses: Sequence[str]
) -> list[Path]:
    """Write `out/HARNESS/...` for each harness; all files or none. Files of other tasks there stay as they are.

    Raises:
        ConfigError: a harness is unknown, or the task's file in the folder is of another set or prompt.
    """
    found = found.labelled()
    if not harnesses or not set(harnesses) <= HARNESSES.keys():
        raise ConfigError(f"--to is {', '.join(harnesses) or 'empty'}; expected {', '.join(HARNESSES)}")
    settings = {
        # letters, digits and underscores: what every harness takes as a name
        "task": "proof_verification_" + (re.sub(r"\W+", "_", found.name, flags=re.ASCII).strip("_") or "set"),
        "set": found.name,
        "n": sampling.n,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "prompt": prompt.template,
    }
    common = {
        f"{settings['task']}.jsonl": _data(found, prompt),
        "verdict.py": inspect.getsource(verdict),
        f"{settings['task']}.md": _readme(found, settings),
    }
    texts = {
        out / name / file: text
        for name in harnesses
        for file, text in {**common, **HARNESSES[name](settings)}.items()
    }
    for path, text in texts.items():
        if path.name == f"{settings['task']}.jsonl" and path.exists() and path.read_bytes() != text.encode():
            raise ConfigError(
                f"{path} exists, with other pairs or another prompt. Give another --out, or delete the file. If the "
                "set has the option name, --set-option name=NAME also helps"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
    write_together({path: text.encode("utf-8", "replace") for path, text in texts.items()})
    return list(texts)


def _data(found: EvalSet, prompt: VerifierPrompt) -> str:
    lines = [
        {
            "pair_id": pair.pair_id,
            "question_id": pair.question_id,
            "slice": pair.slice,
            "target": str(pair.label),
            "prompt": prompt.messages(pair.question, pair.proof)[0]["content"],
        }
        for pair in found.pairs
    ]
    # ASCII: readers that split at Unicode line breaks would cut a line in two
    return "".join(json.dumps(line) + "\n" for line in lines)


def _readme(found: EvalSet, settings: Mapping[str, Any]) -> str:
    about = "\n".join(f"- {sentence}" for sentence in found.describe())
    return (
        f"# {settings['task']}\n\nWritten by `pv-eval export`; the prompt is {settings['prompt']}.\n\n{about}\n\n"
        "`acc` counts a missing verdict as wrong. Intervals, classes and calibration: `pv-eval run`.\n"
    )


def _lm_eval(settings: Mapping[str, Any]) -> dict[str, str]:
    do_sample = "true" if settings["temperature"] > 0 else "false"
    quoted = {**settings, "prompt": json.dumps(settings["prompt"])}  # a file's name, which may be any text
    task = Template(_template("lm_eval_task.txt")).substitute(quoted, do_sample=do_sample)
    return {f"{settings['task']}.yaml": task, f"{settings['task']}.py": _template("lm_eval_utils.txt")}


def _inspect(settings: Mapping[str, Any]) -> dict[str, str]:
    task = Template(_template("inspect_task.txt")).substitute(settings)
    return {f"{settings['task']}.py": task, f"{settings['task']}.json": json.dumps(settings, indent=1) + "\n"}


def _template(name: str) -> str:
    return (files("pv_eval") / "templates" / name).read_text(encoding="utf-8")


HARNESSES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, str]]] = {
    "lm-eval": _lm_eval,
    "inspect": _inspect,
}
"""The files that each harness needs besides data, parser and README."""
