"""Environments for the commands of a page: a new venv whose `pip` installs our packages from wheels.

The packages of others come from the environment of the tests, by a folder of links that leaves out ours, which are
installed there from the clone. `pip install plugins/pv-data` takes the wheel of that folder; no index is asked.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["link_packages", "new_venv", "wheel_of"]

PIP = """#!{python}
import os, sys
sys.path.insert(0, {support!r})
from doc_env import wheel_of
from pathlib import Path
wheels = Path(os.environ["PIP_FIND_LINKS"])
arguments = [wheel_of(one, wheels) for one in sys.argv[1:] if one not in ("-e", "--editable")]
os.execv({python!r}, [{python!r}, "-m", "pip", *arguments])
"""


def link_packages(folder: Path, ours: set[str], extra: list[Path]) -> None:
    """Links to what is installed for this interpreter and in `extra`, without the packages whose names are given.

    The folder has to be called site-packages: dill tells modules that are installed by that.
    """
    folder.mkdir(parents=True)
    names = {name.replace("-", "_") for name in ours}
    sites = [Path(one) for one in sys.path if one.endswith("site-packages")]
    for entry in (entry for site in [*sites, *extra] if site.is_dir() for entry in site.iterdir()):
        stem = re.split(r"[-.]", entry.name.removeprefix("__editable___").removeprefix("__editable__."))[0]
        own = stem in names or any(stem.startswith(f"{name}_") for name in names)
        if not own and entry.suffix != ".pth" and not (folder / entry.name).exists():
            (folder / entry.name).symlink_to(entry)


def new_venv(folder: Path) -> Path:
    """A venv with `pip` and the packages of others. DOC_PACKAGES names their folder."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "packages_of_others.pth").write_text(os.environ["DOC_PACKAGES"] + "\n")
    for name in ("pip", "pip3"):
        (folder / "bin" / name).write_text(PIP.format(python=str(python), support=str(Path(__file__).parent)))
        (folder / "bin" / name).chmod(0o755)
    return python


def wheel_of(argument: str, wheels: Path) -> str:
    """What pip is given for a folder: its wheel, if one of ours is built from it."""
    path, bracket, extras = argument.partition("[")
    project = Path(path, "pyproject.toml")
    if argument.startswith("-") or not project.is_file():
        return argument
    found = re.search(r'^name = "(.+)"', project.read_text(encoding="utf-8"), re.MULTILINE)
    name = found[1].replace("-", "_") if found else ""
    built = list(wheels.glob(f"{name}-*.whl"))
    return f"{built[0]}{bracket}{extras}" if built else argument


def install_all(python: Path, wheels: Path) -> None:
    """All wheels without their dependencies, which are there."""
    pip = [
        str(python),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-compile",
        *map(str, wheels.glob("*.whl")),
    ]
    subprocess.run(pip, check=True, timeout=300)


if __name__ == "__main__":  # `python -m venv FOLDER` of a page
    new_venv(Path(sys.argv[1]))
