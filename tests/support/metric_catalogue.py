"""Catalogue of the metrics, `pv_runs/metrics.csv`, and the entry of a logged name."""

from __future__ import annotations

import csv
from fnmatch import fnmatchcase
from importlib.resources import files

CATALOGUE = {
    line["name"]: line
    for line in csv.DictReader((files("pv_runs") / "metrics.csv").read_text(encoding="utf-8").splitlines())
}


def describe(name: str) -> dict[str, str] | None:
    """The most exact entry of a metric; None if it is not one of ours."""
    found = [one for one in CATALOGUE if fnmatchcase(name, one)]
    return CATALOGUE[max(found, key=len)] if found else None
