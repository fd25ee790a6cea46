"""Package builder: a wheel and an sdist of every package, the same bytes for the same commit.

    python tools/packages.py dist        # or: make dist

The setuptools of this interpreter builds each sdist from a copy of the files that git knows, and each wheel from its
sdist: leftovers of a working tree cannot get in, and a file that an sdist lacks is missed. Modes and owners are fixed,
and times are SOURCE_DATE_EPOCH or else the last commit's.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from multiprocessing import get_context
from pathlib import Path

__all__ = ["FOLDERS", "ROOT", "build"]

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = sorted(f"plugins/{path.parent.name}" for path in ROOT.glob("plugins/*/pyproject.toml"))
FOLDERS = [".", *PLUGINS, "examples/lab"]
"""The folder of each package, below the root."""


def build(out: Path) -> list[Path]:
    """Build every package into `out`.

    Raises:
        RuntimeError: setuptools is older than 77, or this is no clone.
    """
    import setuptools.build_meta  # here, so that the processes below share it

    if int(setuptools.__version__.split(".")[0]) < 77:
        raise RuntimeError(f"setuptools {setuptools.__version__} is too old: pip install 'setuptools>=77'")
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        _copy_sources(Path(work))
        tasks = [(Path(work, folder), out, int(epoch)) for folder in FOLDERS]
        # A process for each package, since setuptools keeps global state.
        with get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
            return [file for files in pool.starmap(_build, tasks, chunksize=1) for file in files]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{ROOT} has to be a clone: git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def _copy_sources(work: Path) -> None:
    """Copy what git tracks or would track, but for tests and what belongs to no package."""
    listed = _git(
        "ls-files", "-co", "--exclude-standard", "-z", ":(glob)*", "src", "hydra_configs", *FOLDERS[1:]
    )
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, work / name
        if source.is_file() and "tests" not in Path(name).parts:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)


def _build(source: Path, out: Path, epoch: int) -> list[Path]:
    from setuptools import build_meta

    os.umask(0o022)
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
    sys.dont_write_bytecode = False  # else setuptools warns that it cannot compile what nobody wants compiled
    quiet = {"--global-option": ["--quiet"]}
    os.chdir(source)
    with tempfile.TemporaryDirectory() as work:
        made = build_meta.build_sdist(work, quiet)
        _repack(Path(work, made), out / made, epoch)
        with tarfile.open(out / made) as archive:  # with its modes: a wheel takes them over
            archive.extraction_filter = getattr(
                tarfile, "data_filter", lambda member, path: member
            )  # before 3.11.4
            archive.extractall(work)
        os.chdir(Path(work, made.removesuffix(".tar.gz")))
        wheel = build_meta.build_wheel(str(out), quiet)
        os.chdir(out)
    return [out / wheel, out / made]


def _repack(made: Path, target: Path, epoch: int) -> None:
    """An sdist with its members in order, and without the times, owners and modes of this machine."""
    with tarfile.open(made) as old, target.open("wb") as file:
        zipped = gzip.GzipFile("", "wb", fileobj=file, mtime=epoch)
        with zipped, tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as new:
            for member in sorted(old.getmembers(), key=lambda member: member.name):
                plain = tarfile.TarInfo(member.name)
                plain.type, plain.size, plain.mtime = member.type, member.size, epoch
                plain.mode = 0o755 if member.isdir() else 0o644
                new.addfile(plain, old.extractfile(member) if member.isfile() else None)


if __name__ == "__main__":
    try:
        print(*build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")), sep="\n")
    except RuntimeError as error:
        sys.exit(str(error))
