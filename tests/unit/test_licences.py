"""Licences of what our packages need: permissive ones, and those that the table below allows by name."""

from __future__ import annotations

import re

import pytest
from licences import licence_of, requirements

PERMISSIVE = re.compile(
    r"Apache([ -](Software )?(License,? )?(Version )?2\.0)?( License)?|Apache Software License|Apache-2\.0 WITH LLVM-.*"
    r"|((2|3)-Clause )?BSD( License|-[23]-Clause| [23]-Clause License)?|MIT(-0|-CMU)?( License)?|0BSD|BSL-1\.0|Zlib"
    r"|ISC License( \(ISCL)?|PSF-2\.0|Python Software Foundation License|CNRI-Python|CC0-1\.0"
)
WEAK_COPYLEFT = {"certifi", "orjson", "tqdm"}
"""Under MPL 2.0: their own files stay under it, and what uses them need not."""
CUDA = re.compile(r"nvidia-.*|cuda-.*")
"""Under NVIDIA's licence, which allows to use them: a CUDA build of torch brings them, a CPU build does not."""


def refused(name: str, licence: str) -> list[str]:
    parts = [part.strip(" ()") for part in re.split(r" AND | OR |, (?=[A-Z])", licence)]
    weak = re.compile("MPL-2.0|Mozilla Public License 2.0.*") if name in WEAK_COPYLEFT else PERMISSIVE
    return [part for part in parts if not (PERMISSIVE.fullmatch(part) or weak.fullmatch(part))]


def test_every_requirement_has_a_licence_that_is_allowed():
    found = requirements()
    assert {"torch", "verl", "ray", "httpx", "pyarrow", "typer"} <= found.keys()
    ours = {name: licence_of(one) for name, one in found.items() if not CUDA.fullmatch(name)}
    assert {name: licence for name, licence in ours.items() if refused(name, licence)} == {}


@pytest.mark.parametrize(
    ("licence", "fine"),
    [
        ("Apache-2.0 AND (MIT OR GPL-3.0-only)", False),
        ("GNU General Public License v3 (GPLv3)", False),
        ("Proprietary", False),
        ("", False),
        ("MPL-2.0", False),
        ("BSD-3-Clause AND 0BSD AND MIT", True),
    ],
)
def test_what_is_not_in_the_list_is_refused(licence, fine):
    assert (refused("x", licence) == []) is fine
