"""Wheels of all packages, for tests that install them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from places import ROOT

__all__ = ["built_wheels", "install_into"]


def built_wheels(folder: Path) -> Path:
    """Build a wheel and an sdist of every package into `folder`, and return it. About 6 s of processor time.

    The environment needs setuptools 77 or later, which `make` installs.
    """
    subprocess.run([sys.executable, ROOT / "tools" / "packages.py", folder], check=True, timeout=300)
    return folder


def install_into(folder: Path, *sources: Path) -> None:
    """Install packages as their wheels do, from sources, into a folder for PYTHONPATH. No index is asked."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        folder,
    ]
    subprocess.run([*pip, *sources], check=True, timeout=300)
