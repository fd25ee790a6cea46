"""Release: checks, packages, checksums, tag. A dry run unless `--tag` is given.

python tools/release.py 0.2.0 --write     # write the version into every package; then commit
python tools/release.py 0.2.0             # check, build twice into dist/pv-rl-0.2.0, write SHA256SUMS
python tools/release.py 0.2.0 --tag       # the same, then tag the commit v0.2.0
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packages import FOLDERS, ROOT, build
from packaging.version import InvalidVersion, Version

PLACES = (
    (re.compile(r'^(version = ")[^"]*(?=")', re.M), [f"{folder}/pyproject.toml" for folder in FOLDERS]),
    (
        re.compile(r'("pv-[a-z]+(?:\[[a-z]+\])?==)[^"]*(?=")'),
        [f"{folder}/pyproject.toml" for folder in FOLDERS],
    ),
    (
        re.compile(r'^(__version__ = ")[^"]*(?=")', re.M),
        [
            str(path.relative_to(ROOT))
            for folder in FOLDERS
            for path in (ROOT / folder).glob("src/*/__init__.py")
        ],
    ),
    (re.compile(r"^(version: )\S*", re.M), ["CITATION.cff"]),
)
"""Where the version is written: a pattern, whose group precedes it, and files."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--tag", action="store_true")
    given = parser.parse_args()
    try:
        version = str(Version(given.version))
    except InvalidVersion as error:
        sys.exit(f"{error}. Give a version such as 0.2.0.")
    if given.write:
        for name, _, new in _outdated(version):
            (ROOT / name).write_text(new)
            print("wrote", name)
        return
    if wrong := list(_problems(version)):
        sys.exit("\n".join(wrong))
    out = ROOT / "dist" / f"pv-rl-{version}"
    files = _built_twice(out)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], check=True)
    sums = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)
    )
    (out / "SHA256SUMS").write_text(sums)
    print(sums + f"{len(files)} files in {out.relative_to(ROOT)}")
    tag = ["git", "tag", "-a", f"v{version}", "-m", f"pv-rl {version}"]
    if given.tag:
        subprocess.run(tag, cwd=ROOT, check=True)
        print(f"tagged v{version}; push it with: git push origin v{version}")
    else:
        print("dry run, no tag was made; with --tag:", " ".join(tag[:-1]), f"'{tag[-1]}'")


def _outdated(version: str) -> Iterator[tuple[str, str, str]]:
    """Files with another version in them: name, the first such text, the right content."""
    for pattern, names in PLACES:
        for name in names:
            text = (ROOT / name).read_text() if (ROOT / name).exists() else ""
            new = pattern.sub(rf"\g<1>{version}", text)
            if new != text:
                yield name, next(m[0] for m in pattern.finditer(text) if not m[0].endswith(version)), new


def _problems(version: str) -> Iterator[str]:
    if changed := _git("status", "--porcelain"):
        yield f"The working tree has changes that no commit holds:\n{changed}"
    for name, found, _ in _outdated(version):
        yield f"{name} has {found!r}. Run tools/release.py {version} --write, and commit."
    if not re.search(rf"^## {re.escape(version)}(?!\S)", (ROOT / "CHANGELOG.md").read_text(), re.M):
        yield f"CHANGELOG.md has no heading '## {version}'. Rename '## Unreleased'."
    if _git("tag", "--list", f"v{version}"):
        yield f"The tag v{version} exists already."


def _built_twice(out: Path) -> list[Path]:
    """Packages that a second build, elsewhere, repeats to the last byte."""
    files = build(out)
    with tempfile.TemporaryDirectory() as again:
        other = [
            file.name for file in build(Path(again)) if file.read_bytes() != (out / file.name).read_bytes()
        ]
    if other:
        sys.exit(f"A second build gave other bytes: {', '.join(other)}.")
    return files


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
