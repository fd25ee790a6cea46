"""Manifest: the settings that a run folder was made with. A resumed run keeps them, or reports which differ."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from pv_data.asking.settings import Model
from pv_data.labels.check import CHECK_TEMPLATE
from pv_data.run.collected import is_collected, read_collected
from pv_data.run.config import RunConfig
from pv_data.run.generate import methods
from pv_data.serving.checkpoint import fingerprint, model_folder
from pv_judge.config import read_config
from pv_judge.files import load_json, verified, with_checksum, write_atomically
from pv_rl.errors import ConfigError, DataError

__all__ = [
    "FILE",
    "LOGS",
    "STAGES",
    "TABLES",
    "check_manifest",
    "check_run",
    "folder_of",
    "settings_of",
    "with_revisions",
    "write_manifest",
]


FILE = "run.json"
VERSION = 1
TABLES = {
    "collect": ("collected", "problems", "proofs"),
    "generate": ("generated",),
    "judge": ("labels", "judgments"),
}
"""Folders of a stage; that which says what is done comes first."""
STAGES = tuple(TABLES)
OF_STAGE = {
    "collect": ("sources", "filters", "seed"),
    "generate": ("generate",),
    "judge": ("panel", "labels"),
}
GROWING = ("sources", "generate")
"""Lists to whose end a run that goes on may add."""
LIMIT = re.compile(r"sources\[\d+\]\.limit")


def settings_of(config: RunConfig) -> dict[str, Any]:
    """All that the rows hang on. Limits, budgets, workers and the like are not in it: they may change."""
    return {
        "seed": config.seed,
        "sources": [{**asdict(source), "path": _fingerprint(Path(source.path))} for source in config.sources],
        "filters": asdict(config.filters),
        "generate": [
            asdict(spec) | {"template": method.template, "asks": _asks(config.models.get(spec.model))}
            for spec, method in zip(config.generate, methods(config), strict=True)
        ],
        "panel": [
            asdict(seat) | {"template": CHECK_TEMPLATE, "asks": _asks(config.models[seat.model])}
            for seat in config.panel
        ],
        "labels": asdict(config.labels),
    }


def check_manifest(run: Path, config: RunConfig, redo: str = "") -> str:
    """Hold a config to what the folder was made with. Returns what `write_manifest` writes down.

    Settings count once there are rows that hang on them: what was wrong in a first attempt may be mended. A source that
    was read is not needed any more, and where it is gone it is taken to be what it was.

    Args:
        run: the folder.
        config: of the run that goes on.
        redo: from this stage on, settings may be others.

    Raises:
        ConfigError: a setting that rows hang on is another.
        DataError: the folder holds something else than a run.
    """
    path, now = run / FILE, json.loads(json.dumps(settings_of(config)))
    try:
        before = verified(load_json(path.read_text()))
        if before["version"] != VERSION:
            raise ValueError(f"it is of version {before['version']}, and this pv-data knows {VERSION}")
        before = _made(run, before["settings"], redo)
    except FileNotFoundError:
        before = None
        if any(run.glob("*/*.parquet")):
            raise DataError(
                f"{run} contains tables but no {FILE}, so it cannot be resumed. Choose another run_dir"
            ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} cannot be read as a manifest ({error}). Restore it, or copy answers.sqlite* to another run_dir "
            "and run there: answers that were kept cost nothing"
        ) from error
    if before is not None:
        for number, (then, source) in enumerate(zip(before.get("sources", []), now["sources"], strict=False)):
            source["path"] = source["path"] or then["path"]
            record = read_collected(run, number)
            if record is not None:
                if record.parts is None:
                    record = record.completed(run, number, then["limit"])
                then["limit"] = source["limit"] if record.grows(source["limit"]) else record.limit
        if changed := _changed(before, {name: now[name] for name in before}):
            raise ConfigError(f"{run} was made with other settings: {'; '.join(changed)}. {_advice(changed)}")
    return json.dumps(with_checksum({"version": VERSION, "settings": now}), indent=1)


def _advice(changed: list[str]) -> str:
    """What to do about settings that differ."""
    names = [one.partition(" ")[0] for one in changed]
    first = min(
        STAGES.index(stage) for stage, of in OF_STAGE.items() if any(_top(one) in of for one in names)
    )
    lower = " (a limit can only be raised: a run keeps its rows)" if any(map(LIMIT.fullmatch, names)) else ""
    return (
        f"Change them back{lower}, choose another run_dir (copy answers.sqlite* there to keep the answers), or add "
        f"--redo {STAGES[first]}: this stage and those after it are done again, answers that were kept cost nothing, "
        "and only new questions are asked"
    )


def _top(name: str) -> str:
    return re.split(r"[.\[]", name, maxsplit=1)[0]


def check_run(run: Path) -> None:
    """Refuse a folder that is no run, of which all that is asked would come out empty.

    Raises:
        DataError: there is no run there.
    """
    if not (run / FILE).is_file():
        raise DataError(f"{run} is not a run folder: it has no {FILE}. Give the run_dir of a pv-data run")


def write_manifest(run: Path, text: str) -> None:
    """Write down what the folder is made with, once nothing in it was made with anything else."""
    write_atomically(run / FILE, lambda temporary: temporary.write_text(text))


def _made(run: Path, settings: dict[str, Any], redo: str) -> dict[str, Any]:
    """Those settings that rows of the run hang on which stay."""
    stay = STAGES[: STAGES.index(redo)] if redo else STAGES
    begun = [stage for stage in stay if _is_begun(run, stage)]
    names = [name for stage in begun for name in OF_STAGE[stage]]
    made = {name: settings[name] for name in names}
    if "sources" in made:
        made["sources"] = [source for n, source in enumerate(made["sources"]) if is_collected(run, n)]
    return made


def _is_begun(run: Path, stage: str) -> bool:
    places = [f"{table}/*" for table in TABLES[stage]] + [f"aside/{stage}-*"]
    return any(any(run.glob(place)) for place in places)


def _changed(before: Any, now: Any, where: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        keys = list(dict.fromkeys([*before, *now]))
        return [
            one
            for key in keys
            for one in _changed(before.get(key), now.get(key), f"{where}.{key}".lstrip("."))
        ]
    if isinstance(before, list) and isinstance(now, list) and where in GROWING and len(now) >= len(before):
        pairs = zip(before, now, strict=False)
        return [one for i, pair in enumerate(pairs) for one in _changed(*pair, f"{where}[{i}]")]
    if before == now:
        return []
    return [f"{where} was {_short(before)} and is {_short(now)}"]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _asks(model: Model | None) -> Any:
    if model is None:
        return None
    # Of a local model its name and, in the fields, its weights: neither where it lies nor what serves it.
    asked = [[one.model, one.extra_body] for one in model.endpoints] or [[model.model, {}]]
    return [*asked, model.fields()]


def _fingerprint(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files; empty for what is not there, which its source will say."""
    digest = hashlib.sha256()
    if not path.exists():
        return ""
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    for file in files:
        try:
            with file.open("rb") as opened:
                digest.update(os.fsencode(file.relative_to(path)))
                while block := opened.read(1 << 20):
                    digest.update(block)
        except OSError:
            digest.update(b"\0cannot be read\0")
    return digest.hexdigest()[:20]


LOGS = "logs"


def folder_of(model: Model, run: Path) -> Path:
    """The folder of a local model that is served; a checkpoint of verl is converted first.

    Raises:
        DataError: it holds no model.
    """
    assert model.local is not None
    return model_folder(Path(model.local.checkpoint), run / LOGS / "merge.log")


def with_revisions(config: RunConfig, run: Path) -> RunConfig:
    """The config, whose local models say what their weights are.

    Raises:
        DataError: a folder holds no model.
        ConfigError: two local models that are used are one.
    """
    models = dict(config.models)
    for name in config.named:
        model = models[name]
        if model.local is not None:
            models[name] = replace(model, revision=_revision(model, run))
    settings = {one.name: getattr(config, one.name) for one in fields(config)}
    return read_config({**settings, "models": models}, RunConfig, "")


def _revision(model: Model, run: Path) -> str:
    assert model.local is not None
    if not Path(model.local.checkpoint).exists() and (written := _written(model, run)):
        return written  # the run was made elsewhere, and may have nothing left to ask
    return f"{model.revision} {fingerprint(folder_of(model, run))}".strip()


def _written(model: Model, run: Path) -> str:
    """The revision that the run's folder has been made with; empty where it says nothing of such a model."""
    try:
        settings = load_json((run / FILE).read_text())["settings"]
        asked = [one["asks"] for one in (*settings["generate"], *settings["panel"]) if one["asks"]]
    except (OSError, ValueError, KeyError, TypeError):  # `check_manifest` will say what is wrong with it
        return ""
    for (name, _), *_, sampling in asked:
        made = load_json(sampling)
        revision = made.pop("revision", "")
        same = made == json.loads(replace(model, revision="").fields())
        if name == model.model and same and revision.startswith(model.revision):
            return revision
    return ""
