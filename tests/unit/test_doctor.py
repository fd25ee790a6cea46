"""The doctor: each check is one line, and a problem has a remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest
from rich.console import Console

import pv_doctor as doctor
from pv_doctor.findings import print_findings
from pv_rl import plugins
from pv_rl.hookspecs import Finding, hookimpl
from pv_rl.plugins import LOSS_MODES, REWARDS


def test_a_plugin_that_is_left_out_is_wrong_and_named_also_without_verl(monkeypatch):
    assert doctor.all_checks()["plugins"]().state == "ok"
    monkeypatch.setattr(doctor, "left_out", lambda: ["theirs: it failed to load"])
    finding = doctor.all_checks()["plugins"]()
    assert finding.state == "wrong"
    assert finding.text == "left out: theirs: it failed to load"
    assert "pv_rl.plugins" in finding.remedy


def test_a_verl_that_was_not_tested_is_a_note():
    state = {"loaded": True, "problem": "", "modes": ["grpo"], "rewards": ["verdict"]}
    state |= {"verl": "verl 0.10.0 in /site", "remark": "verl 0.10.0 in /site is served, and was not tested."}
    finding = doctor._adapter_finding(state, "this process")
    assert finding.state == "note"
    assert finding.text.startswith(
        "verl 0.10.0 in /site loads pv-rl in this process (modes: 1, rewards: 1). "
    )
    assert finding.text.endswith("is served, and was not tested")


def test_what_only_verl_needs_is_a_note_where_another_trainer_is_used(monkeypatch):
    wrong = Finding(state="wrong", text="verl is missing", remedy="as for packages")
    checks = {name: lambda: wrong for name in ("python", "packages", "driver", "config", "worker")}
    monkeypatch.setattr(doctor, "all_checks", lambda run: checks)
    installed = {"pv_trainers"}
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: name in installed or None)
    assert [one.state for one in doctor.examine().values()] == ["wrong", *["note"] * 4]
    assert {one.state for one in doctor.examine(["run=8b"]).values()} == {"wrong"}
    installed.clear()
    assert {one.state for one in doctor.examine().values()} == {"wrong"}


def test_plugins_add_checks_and_may_replace_one_of_the_core(monkeypatch):
    class Theirs:
        @staticmethod
        @hookimpl
        def pv_rl_doctor_checks(run):
            return {"config": lambda: Finding(state="ok", text=" ".join(run)), "theirs": lambda: None}

    class Broken:
        @staticmethod
        @hookimpl
        def pv_rl_doctor_checks():
            raise RuntimeError

    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    plugins.forget_plugins(reload=True)
    assert "theirs" not in doctor.all_checks()
    for plugin in (Broken, Theirs):
        plugins.plugin_manager().register(plugin)
    checks = doctor.all_checks(["run=8b", "recipe=dapo"])
    plugins.forget_plugins(reload=True)
    assert checks["config"]().text == "run=8b recipe=dapo"
    assert list(checks)[-2:] == ["worker", "theirs"]


def test_the_config_of_a_run_needs_pv_runs():
    finding = doctor._guarded(lambda: doctor._config(["run=8b"]))
    assert finding.state == "wrong"
    assert "needs the package pv-runs, which is not installed" in finding.text


def test_a_check_that_breaks_down_is_a_finding():
    def _odd_check() -> Finding:
        raise ZeroDivisionError("by nobody")

    finding = doctor._guarded(_odd_check)
    assert finding.state == "wrong"
    assert "ZeroDivisionError: by nobody" in finding.text


def test_a_missing_package_is_named_without_a_traceback():
    def _broken() -> Finding:
        import no_such_package  # noqa: F401  # pyright: ignore[reportMissingImports]

        raise AssertionError

    assert doctor._guarded(_broken).text == "no_such_package is missing"


def test_optional_packages_that_are_absent_and_notes_do_not_read_as_faults(monkeypatch, capsys):
    def absent(name: str) -> str:
        if name in doctor.OPTIONAL:
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(doctor, "version", absent)
    packages = doctor._packages()
    assert packages.state == "ok"
    assert packages.text.endswith("vllm not installed (optional), pv-cpu not installed (optional)")
    assert print_findings({"device": Finding(state="note", text="no GPU", remedy="x")}, Console())
    assert capsys.readouterr().out.endswith("This environment will work; see the notes above.\n")


def run_doctor(**env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pv_rl.cli", "doctor"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **env})


@pytest.mark.slow
def test_the_doctor_finds_this_environment_well():
    pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")
    done = run_doctor(VERL_PLATFORM="cpu")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(lines) == 11
    assert lines[-1] == "This environment will work."
    worker = next(line for line in lines if line.startswith("ok    worker"))
    assert f"(modes: {len(LOSS_MODES.entries())}, rewards: {len(REWARDS.entries())})" in worker


@pytest.mark.slow
def test_the_doctor_says_that_plugins_are_off_and_how_to_turn_them_on():
    pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
    done = run_doctor(VERL_USE_EXTERNAL_PLUGINS="none", VERL_PLATFORM="cpu")
    assert done.returncode == 1
    wrong = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
    assert {line.split()[1] for line in wrong} == {"driver", "worker"}
    assert all("Remedy: unset VERL_USE_EXTERNAL_PLUGINS" in line for line in wrong), done.stdout
