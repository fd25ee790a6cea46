"""What the wheels and sdists of all packages hold and state, and the commands that messages give to install them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest
from places import ROOT
from wheels import built_wheels

from pv_rl.installing import NEEDS, how_to_install

PROJECTS = [ROOT, *sorted((ROOT / "plugins").glob("pv-*")), ROOT / "examples" / "lab"]
NAMES = {
    str(tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"]): folder
    for folder in PROJECTS
}
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

each_package = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheels(tmp_path_factory.mktemp("dist"))


def wheel(dist: Path, name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(dist / f"{name.replace('-', '_')}-{VERSION}-py3-none-any.whl")


def metadata(dist: Path, name: str) -> Message:
    with wheel(dist, name) as opened:
        (path,) = (one for one in opened.namelist() if one.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(opened.read(path))


def sources(name: str) -> set[str]:
    """Files of the package's code that git knows, by their path below the folder of the package."""
    folders = ["src", "hydra_configs"] if name == "pv-rl" else ["src"]
    listed = git("ls-files", "-co", "--exclude-standard", "-z", *folders, folder=NAMES[name]).split("\0")
    return {one for one in filter(None, listed) if (NAMES[name] / one).is_file()}


def git(*arguments: str, folder: Path = ROOT) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@each_package
def test_wheel_holds_the_code_and_data_files_of_its_package_and_nothing_else(dist, name):
    with wheel(dist, name) as opened:
        held = {one for one in opened.namelist() if ".dist-info/" not in one}
        licences = [one for one in opened.namelist() if one.endswith(".dist-info/licenses/LICENSE")]
    code = {one.removeprefix("src/") if one.startswith("src/") else f"pv_rl/{one}" for one in sources(name)}
    assert held == code
    assert {f"{top}/py.typed" for top in {one.split("/")[0] for one in held}} <= held
    assert len(licences) == 1


@each_package
def test_sdist_holds_what_builds_the_wheel_and_no_test(dist, name):
    stem = f"{name.replace('-', '_')}-{VERSION}"
    with tarfile.open(dist / f"{stem}.tar.gz") as opened:
        held = {one.name.removeprefix(f"{stem}/") for one in opened if one.isfile()}
    made = {one for one in held if ".egg-info/" in one}
    assert held - made == sources(name) | {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}


@each_package
def test_files_have_the_time_of_the_commit_and_fixed_owners_and_modes(dist, name):
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    with wheel(dist, name) as opened:
        kept = {(one.date_time[:5], one.external_attr >> 16 & 0o777) for one in opened.infolist()}
    assert kept == {(time.gmtime(epoch)[:5], 0o644), (time.gmtime(epoch)[:5], 0o664)}  # 664: RECORD alone
    with tarfile.open(dist / f"{name.replace('-', '_')}-{VERSION}.tar.gz") as opened:
        members = {(one.mtime, one.uid, one.gid, one.uname, one.mode) for one in opened}
    assert members == {(epoch, 0, 0, "", 0o644), (epoch, 0, 0, "", 0o755)}  # 755: folders


@each_package
def test_metadata_states_licence_pythons_addresses_and_readme(dist, name):
    stated = metadata(dist, name)
    assert (stated["License-Expression"], stated["License-File"]) == ("Apache-2.0", "LICENSE")
    assert stated["Description-Content-Type"] == "text/markdown"
    assert (
        bytes(stated.get_payload(decode=True)).decode().strip()
        == (NAMES[name] / "README.md").read_text().strip()
    )
    assert stated.get_all("Project-URL")
    below = {"<3.13,>=3.11": 13, "<3.14,>=3.11": 14}[stated["Requires-Python"]]
    versions = [one for one in stated.get_all("Classifier", []) if "Python :: 3" in one]
    assert versions == [f"Programming Language :: Python :: 3.{minor}" for minor in range(11, below)]


@each_package
def test_packages_share_a_version_and_need_each_other_at_it(dist, name):
    needed = [one.partition(";")[0].strip() for one in metadata(dist, name).get_all("Requires-Dist", [])]
    ours = [one for one in needed if one.startswith("pv-") and not one.startswith(f"{name}[")]
    assert ours or name in ("pv-rl", "pv-cpu")
    assert {one.partition("==")[2] for one in ours} <= {VERSION}
    with wheel(dist, name) as opened:
        tops = [
            opened.read(one).decode()
            for one in opened.namelist()
            if one.count("/") == 1 and "__init__" in one
        ]
    assert set(re.findall(r'^__version__ = "(.*)"', "\n".join(tops), re.M)) <= {VERSION}


def test_a_remedy_installs_what_a_package_needs():
    needs = {}
    for name, folder in NAMES.items():
        listed = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["dependencies"]
        needs[name] = {
            match[0] for one in listed if (match := re.match(r"pv-[a-z]+", one)) and match[0] != "pv-rl"
        }
    for name, direct in needs.items():
        closed = direct.union(*(needs[one] for one in direct))
        assert closed == closed.union(*(needs[one] for one in closed))
        assert set(NEEDS.get(name, ())) == closed
        folders = re.findall(r"\./[\w/-]+", how_to_install(name)) if name != "pv-rl" else []
        assert {ROOT / one for one in folders} == {NAMES[one] for one in {name, *closed} - {"pv-rl"}}


def test_only_the_helper_writes_the_command_for_a_package_of_this_repository():
    """None is on an index: `pip install pv-judge` in a message would fail, or install a stranger's package."""
    command = re.compile(r"""pip install [^\n"]*(\bpv-|plugins/|\.\[)""")
    found = {
        one
        for name, folder in NAMES.items()
        for one in sources(name)
        if one.endswith(".py") and command.search((folder / one).read_text())
    }
    assert found <= {"src/pv_rl/installing.py", "src/pv_lab/smol/outcomes.py"}


def test_the_builder_wants_a_setuptools_that_knows_licence_expressions(tmp_path):
    (tmp_path / "setuptools").mkdir()
    (tmp_path / "setuptools" / "__init__.py").write_text('__version__ = "65.5.0"')
    (tmp_path / "setuptools" / "build_meta.py").touch()
    code = "import sys; sys.path[:0] = sys.argv[1:]; import packages, pathlib; packages.build(pathlib.Path('out'))"
    command = [sys.executable, "-c", code, str(tmp_path), str(ROOT / "tools")]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60).stderr
    assert "setuptools 65.5.0 is too old: pip install 'setuptools>=77'" in said
