"""Files for the host of the repository: what workflows run exists, and the citation and the badges are true."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml
from places import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def project(pattern: str) -> list[str]:
    return re.findall(pattern, (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)


def commands(workflow: str) -> list[list[str]]:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8"))["jobs"]
    return [shlex.split(step["run"]) for job in jobs.values() for step in job["steps"] if "run" in step]


def test_one_workflow_runs_what_ci_runs_and_one_tests_the_newest_verl_every_night():
    assert commands("ci.yml") == [[".ci/run"]]
    assert ["make", "test-verl", "VERL=newest"] in commands("nightly.yml")
    nightly = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8"))
    assert nightly[True]["schedule"]  # `on` is a boolean of YAML 1.1


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_may_only_read_and_runs_targets_that_exist(file):
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for command in commands(file.name):
        assert (ROOT / command[0]).is_file() or (command[0] == "make" and command[1] in targets)


def test_the_citation_has_this_version_and_both_names_of_the_paper():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert [cited["version"]] == project(r'^version = "(.*)"')
    paper, (first, *_) = cited["preferred-citation"], cited["references"]
    assert paper["title"].startswith("ProofVerifier: ")
    assert first["title"].startswith("Proof-RM: ")
    assert paper["authors"] == first["authors"]
    assert len(paper["authors"]) == 10
    assert "arXiv:2602.02377" in paper["notes"]


def test_the_badges_say_what_the_package_says():
    badges = re.findall(
        r"img\.shields\.io/badge/(\S+?)-blue", (ROOT / "README.md").read_text(encoding="utf-8")
    )
    versions = project(r'"Programming Language :: Python :: (3\.\d+)"')
    (licence,) = project(r'^license = "(.*)"')
    assert badges == [f"license-{licence.replace('-', '--')}", f"python-{versions[0]}_to_{versions[-1]}"]
