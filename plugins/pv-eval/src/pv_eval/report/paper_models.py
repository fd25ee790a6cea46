"""Model roles: which verifier is an API, a base model, trained from a base model, or trained on part of the data.

The paper's tables compare verifiers that have such roles, which votes do not tell. `paper_models.yaml` has those of the
paper's models and describes the fields; a file of the same form adds the user's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pv_data.shell import load_yaml
from pv_judge.pages.text import plain
from pv_rl.errors import ConfigError
from pv_rl.plugins import nearest

__all__ = ["KINDS", "Model", "find_model", "read_models"]

KINDS = {"api": "closed or API", "base": "base", "trained": "trained", "": "other"}
"""Kinds in the order of the paper's tables, with their titles. The last is that of a verifier without a role."""
FIELDS = ("kind", "base", "row", "full", "kept")
LARGEST = 1_000_000
"""Bytes of a file of models."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """The role of a verifier in the paper's tables."""

    name: str
    """As its runs name it."""
    kind: str = ""
    """One of `KINDS`."""
    base: str = ""
    """The model that it was trained from; empty: none, or unknown."""
    row: str = ""
    """The paper's row that it is shown beside; empty: a row of its own."""
    full: str = ""
    """Of a data ablation, the verifier that was trained on all the data."""
    kept: float | None = None
    """Of a data ablation, how much of the data was kept, in percent."""


def find_model(models: Mapping[str, Model], name: str, verifiers: Collection[str]) -> str:
    """The verifier that `name` is: one of `verifiers` with this name, else the first that is shown beside the row
    `name`, else the name itself, which has no run."""
    if name in verifiers:
        return name
    return next((one for one in verifiers if name and models[one].row == name), name)


def read_models(path: Path | None, verifiers: Collection[str]) -> dict[str, Model]:
    """The paper's models, those of a file, and the verifiers of the runs, by name.

    Args:
        path: YAML of the form of `paper_models.yaml`; None for the paper's models alone.
        verifiers: of the runs.

    Raises:
        ConfigError: the file cannot be read, or a field is unknown, contradicts another or names no model.
    """
    theirs = load_yaml(files("pv_eval.report").joinpath("paper_models.yaml").read_text(encoding="utf-8"))
    rows = {name: Model(**{"name": name, "row": name, **given}) for name, given in theirs.items()}
    rows = {name: replace(row, kind="trained") if row.base else row for name, row in rows.items()}
    given = _read(path) if path is not None else {}
    names = list(dict.fromkeys([*rows, *given, *verifiers]))
    made = {name: _model(name, given.get(name, {}), rows, path) for name in names}
    bases = {find_model(made, one.base, verifiers) for one in made.values() if one.base}
    for name, model in made.items():
        _check_names(made, model, f"--models {path}: {plain(name, 80)}")
        if not model.kind and name in bases:
            made[name] = replace(model, kind="base")
    return made


def _check_names(models: Mapping[str, Model], model: Model, where: str) -> None:
    """Check that `base` and `full` name another model, and a whole one for an ablation."""
    for field in ("base", "full"):
        other = getattr(model, field)
        if other and other not in models:
            raise ConfigError(
                f"{where} has {field}: {plain(other, 80)}, and no run, no entry of the file and no model of the paper "
                f"has this name.{nearest(other, models)} Correct the name"
            )
        if other == model.name:
            raise ConfigError(f"{where} names itself as {field}; name another verifier")
    if model.full and models[model.full].full:
        raise ConfigError(
            f"{where} has full: {plain(model.full, 80)}, which is a data ablation too; name the verifier that was "
            "trained on all the data"
        )
    if model.base and models[model.base].base == model.name:
        raise ConfigError(
            f"{where} and {plain(model.base, 80)} name each other as base; remove one of the two"
        )


def _read(path: Path) -> dict[str, dict[str, Any]]:
    if path.is_file() and path.stat().st_size > LARGEST:
        raise ConfigError(f"--models {path} has more than {LARGEST:,} bytes; expected a short YAML file")
    try:
        given = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"--models {path} cannot be read as YAML: {plain(error, 300)}") from error
    given = {} if given is None else given
    if not isinstance(given, dict) or not all(
        isinstance(name, str) and isinstance(one, dict) for name, one in given.items()
    ):
        raise ConfigError(
            f"--models {path}: expected names of verifiers with fields, for example "
            "my-verifier: {base: my-base, row: ProofVerifier-8B}"
        )
    return given


def _model(name: str, given: Mapping[Any, Any], rows: Mapping[str, Model], path: Path | None) -> Model:
    """The role that the fields `given` describe; the paper's row fills in the others."""
    where = f"--models {path}: {plain(name, 80)}"
    for field, value in given.items():
        if field not in FIELDS:
            raise ConfigError(
                f"{where} has the field {_shown(field)}.{nearest(str(field)[:80], FIELDS)} Expected {', '.join(FIELDS)}"
            )
        if field == "kept":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and 0 < value <= 100):
                raise ConfigError(f"{where} has kept: {_shown(value)}; expected percent, above 0 up to 100")
        elif not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{where} has {field}: {_shown(value)}; expected a text, in quotes if need be")
    kind, row = given.get("kind"), given.get("row", name if name in rows else "")
    if kind not in (None, *filter(None, KINDS)):
        raise ConfigError(f"{where} has kind: {_shown(kind)}; expected {', '.join(filter(None, KINDS))}")
    if row and row not in rows:
        raise ConfigError(f"{where} has row: {_shown(row)}.{nearest(row, rows)} Expected {', '.join(rows)}")
    if kind in ("api", "base") and "base" in given:
        raise ConfigError(
            f"{where} has kind: {kind} and a base; a verifier with a base is trained. Remove one"
        )
    of_row = rows.get(row, Model(name=name))
    if "full" in given and row and not of_row.full:
        ablations = [one for one in rows if rows[one].full]
        raise ConfigError(
            f"{where} is a data ablation (full) with row: {row}; expected {', '.join(ablations)}, or no row"
        )
    base = given.get("base", "" if kind in ("api", "base") else of_row.base)
    return Model(
        name=name,
        kind=kind or ("trained" if base else of_row.kind),
        base=base,
        row=row,
        full=given.get("full", of_row.full),
        kept=given.get("kept", of_row.kept if name in rows else None),
    )


def _shown(value: object) -> str:
    """A value in an error; numbers and nested values may be too long to write out."""
    if value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < 1e9):
        return str(value)
    return repr(plain(value, 80)) if isinstance(value, str) else f"a value of type {type(value).__name__}"
