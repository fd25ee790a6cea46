"""The launchers: without their trainer, or with a wrong command line, each ends with one line."""

from __future__ import annotations

import runpy
import sys

import pytest

from pv_trainers.launch import run_script, starting

LAUNCHERS = {
    "train_openrlhf": (["balanced"], "openrlhf", "pip install openrlhf==0.11.2"),
    "nemo_rl": (["run_grpo.py"], "nemo_rl", "clone of github.com/NVIDIA-NeMo/RL"),
    "prime_rl": (["balanced", "rl"], "prime_rl", "clone of github.com/PrimeIntellect-ai/prime-rl"),
}


@pytest.fixture
def launch(monkeypatch):
    """Run `python -m pv_trainers.NAME ARGUMENTS` where no trainer can be imported; what it ends with."""

    def ended(name: str, *arguments: str) -> str:
        packages = {package for _, package, _ in LAUNCHERS.values()}
        for module in [*packages, *(one for one in sys.modules if one.partition(".")[0] in packages)]:
            monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        monkeypatch.delitem(sys.modules, f"pv_trainers.{name}", raising=False)
        with pytest.raises(SystemExit) as stop:
            runpy.run_module(f"pv_trainers.{name}", run_name="__main__")
        return str(stop.value.code)  # a text: Python prints it to stderr, and the exit code is 1

    return ended


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_without_its_trainer_prints_what_to_install(launch, name):
    arguments, package, remedy = LAUNCHERS[name]
    error = launch(name, *arguments)
    assert error.startswith(f"error: the package {package} is not installed in {sys.prefix}. ")
    assert remedy in error


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_without_arguments_prints_its_usage(launch, name):
    assert launch(name).startswith(f"usage: python -m pv_trainers.{name} ")


@pytest.mark.parametrize("name", ["train_openrlhf", "prime_rl"])
def test_a_mode_that_does_not_exist_is_one_line_too(launch, name):
    assert launch(name, "bal", "rl").startswith("error: loss_agg_mode 'bal' names no mode")


def test_a_trainer_of_another_version_is_not_called_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ours", sys)  # imported before its module is looked for
    with (
        pytest.raises(SystemExit, match=r"ours has no module ours\.later: it is another version\. Clone"),
        starting("ours", install="Clone it."),
    ):
        raise ModuleNotFoundError("No module named 'ours.later'", name="ours.later")


def test_a_script_that_does_not_exist_is_one_line(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["nemo_rl", "run_grpo.py"])
    with pytest.raises(SystemExit, match=r"error: there is no script run_grpo\.py"):
        run_script()
