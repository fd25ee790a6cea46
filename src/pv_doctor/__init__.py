"""Checks of `pv-rl doctor`: whether an environment works, one line each, with a remedy for each problem.

They are outside the core and come in the same wheel; plugins add checks by a hook. A run needs only `reward`.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pv_rl
from pv_doctor.command import check_command, is_command
from pv_doctor.completion import complete
from pv_rl.errors import PvRlError, SetupError
from pv_rl.hookspecs import Finding
from pv_rl.installing import how_to_install
from pv_rl.plugins import LOSS_MODES, REWARDS, hook_results, left_out

__all__ = ["all_checks", "complete", "doctor", "examine", "quiet"]

PACKAGES = ("torch", "verl", "ray", "transformers", "TransferQueue", "vllm", "pv-cpu")
OPTIONAL = ("vllm", "pv-cpu")
RUN = "small"
"""The run whose config is composed if none is named."""


def doctor(run: Sequence[str]) -> bool:
    """Run every check and print what it found. Returns whether none failed."""
    from rich.console import Console

    from pv_doctor.findings import print_findings

    quiet()  # only the findings matter
    console = Console(soft_wrap=True)
    with console.status("checking, up to a minute"):
        findings = examine(run)
    return print_findings(findings, console)


def examine(run: Sequence[str] = ()) -> dict[str, Finding]:
    """Run every check. One that raises is a finding and stops no other.

    Args:
        run: `run=NAME` and overrides, as for `pv-rl train`, or a command of verl.
    """
    found = {name: _guarded(check) for name, check in all_checks(run).items()}
    other_trainers = importlib.util.find_spec("verl") is None and importlib.util.find_spec("pv_trainers")
    if other_trainers and not run:
        for name in ("packages", "driver", "config", "worker"):
            if found[name].state == "wrong":
                found[name] = replace(found[name], state="note", remedy="only verl needs it")
    return found


def all_checks(run: Sequence[str] = ()) -> dict[str, Callable[[], Finding]]:
    """The checks by name, ours and those of plugins; see `pv_rl.hookspecs.pv_rl_doctor_checks`.

    Of a command of verl: only those of the installation, and that of the command.
    """
    checks: dict[str, Callable[[], Finding]] = {
        "python": _python,
        "packages": _packages,
        "plugins": _plugins,
        "device": _device,
        "driver": _driver,
    }
    if is_command(run):
        return checks | {"worker": _worker, "command": lambda: check_command(run)}
    checks |= {"weights": _weights, "reward": _reward, "config": lambda: _config(run), "worker": _worker}
    for added in hook_results("pv_rl_doctor_checks", run=tuple(run)):
        checks |= added
    return checks


def _guarded(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except ModuleNotFoundError as error:
        return Finding(state="wrong", text=f"{error.name} is missing", remedy="as for packages")
    except PvRlError as error:
        return Finding(state="wrong", text=str(error))
    except Exception as error:  # noqa: BLE001 - a doctor reports every error
        remedy = "fix what the other lines report; if they are all ok, report this line as a bug of pv-rl"
        return Finding(state="wrong", text=f"{type(error).__name__}: {error}", remedy=remedy)


def _checked(right: bool, text: str, remedy: str) -> Finding:
    return Finding(state="ok", text=text) if right else Finding(state="wrong", text=text, remedy=remedy)


def _python() -> Finding:
    served = (3, 11) <= sys.version_info[:2] < (3, 13)
    text = f"Python {platform.python_version()}, pv-rl {pv_rl.__version__}"
    return _checked(served, text, "pv-rl with verl needs Python 3.11 or 3.12")


def _packages() -> Finding:
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    missing = {name: "not installed (optional)" if name in OPTIONAL else "missing" for name in found}
    text = ", ".join(f"{name} {number or missing[name]}" for name, number in found.items())
    complete = all(number is not None or name in OPTIONAL for name, number in found.items())
    first = "" if found["torch"] else "Install torch first. "
    return _checked(complete, text, f"{first}{how_to_install('pv-rl[verl]')}")


def _plugins() -> Finding:
    names = f"modes {', '.join(LOSS_MODES.entries())}; rewards {', '.join(REWARDS.entries())}"
    wrong = left_out()
    text = f"left out: {'; '.join(wrong)}" if wrong else names
    return _checked(
        not wrong,
        text,
        "correct the package (its entry point is in the group pv_rl.plugins), or uninstall it",
    )


def _device() -> Finding:
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return Finding(state="ok", text=f"{len(names)} GPU: {', '.join(sorted(set(names)))}")
    if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
        found = importlib.util.find_spec("pv_cpu") is not None
        return _checked(found, "CPU, through pv-cpu (VERL_PLATFORM=cpu)", how_to_install("pv-cpu"))
    there = importlib.util.find_spec("pv_cpu") is not None
    remedy = "set VERL_PLATFORM=cpu, as pv-rl quickstart does" if there else how_to_install("pv-cpu")
    return Finding(state="note", text="no GPU; pv-cpu trains small models on a CPU", remedy=remedy)


def _adapter_state() -> dict[str, Any]:
    """Import verl as every process of a run does, and see whether verl loads pv-rl. Also runs in a Ray worker."""
    import verl  # noqa: F401  (the import loads the plugins)

    if "pv_rl.verl_adapter" not in sys.modules:
        return {"loaded": False}  # pv-cpu is not loaded either, and the rest of verl may need it
    from verl.utils.import_utils import load_extern_object

    from pv_rl.verl_adapter import contract

    try:
        contract.check("a reward, or a mode of scope prompt,", "weightings", "rewards", "V1 trainer")
        load_extern_object(module_path="pkg://pv_rl.rewards.named", object_name="verdict")
        problem = ""
    except PvRlError as error:
        problem = str(error)
    return {
        "loaded": True,
        "verl": contract.version(),
        "problem": problem,
        "remark": "" if problem else contract.remark(),
        "modes": list(LOSS_MODES.entries()),
        "rewards": list(REWARDS.entries()),
    }


def _adapter_finding(state: dict[str, Any], where: str) -> Finding:
    if not state["loaded"]:
        policy = os.environ.get("VERL_USE_EXTERNAL_PLUGINS", "auto")
        return Finding(
            state="wrong",
            text=f"import verl does not load pv-rl in {where} (VERL_USE_EXTERNAL_PLUGINS={policy})",
            remedy="unset VERL_USE_EXTERNAL_PLUGINS, or add pv_rl to it; reinstall pv-rl if that is not it",
        )
    if state["problem"]:
        return Finding(state="wrong", text=state["problem"], remedy="follow that message")
    number = f"modes: {len(state['modes'])}, rewards: {len(state['rewards'])}"
    text = f"{state['verl']} loads pv-rl in {where} ({number}). {state['remark']}".rstrip(". ")
    return Finding(state="note" if state["remark"] else "ok", text=text)


def _driver() -> Finding:
    return _adapter_finding(_adapter_state(), "this process")


def _weights() -> Finding:
    from pv_rl.losses import response_weights

    weights = response_weights("balanced:0.6", [1, 2, 5], "aaa").tolist()
    right = all(abs(w - x) < 1e-12 for w, x in zip(weights, [0.25, 0.15, 0.09], strict=True))
    text = f"balanced:0.6 weighs lengths 1, 2, 5 by {', '.join(f'{w:.2f}' for w in weights)}"
    return _checked(right, text, "0.25, 0.15, 0.09 are right: reinstall pv-rl")


def _reward() -> Finding:
    import asyncio

    from pv_rl.rewards.named import scorer

    row = asyncio.run(scorer("verdict")("doctor", "Step 2 fails.\n**### False**", "False"))
    text = f"the reward verdict scores a right rejection {row['score']:g}"
    return _checked(row["score"] == 1.0, text, "1 is right: reinstall pv-rl")


def _config(run: Sequence[str]) -> Finding:
    """With pv-runs, its check takes the place of this one."""
    import verl  # noqa: F401  (our configs extend its config)
    from hydra import compose, initialize_config_module

    from pv_rl.recipes.choices import MODE, value

    if run:
        raise SetupError(
            f"`pv-rl doctor {run[0]}` needs the package pv-runs, which is not installed. "
            + how_to_install("pv-runs")
        )
    with initialize_config_module("pv_rl.hydra_configs.runs", version_base="1.3"):
        mode = value(compose(RUN), MODE)
    return Finding(state="ok", text=f"run={RUN} composes with verl's ppo_trainer, {mode}")


def _worker() -> Finding:
    import ray

    # Not the cluster that the environment may name.
    with tempfile.TemporaryDirectory(prefix="pvrl-", ignore_cleanup_errors=True) as folder:
        start = functools.partial(
            ray.init,
            address="local",
            num_cpus=1,
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            _temp_dir=folder,
        )
        try:
            start()
        except Exception as error:
            if "timed out during startup" not in str(error):  # 30 s, which a busy machine may not keep
                raise
            ray.shutdown()
            start()
        try:
            state = ray.get(ray.remote(num_cpus=1)(_adapter_state).remote(), timeout=120)
        finally:
            ray.shutdown()
    return _adapter_finding(state, "a Ray worker")


def quiet() -> None:
    """Drop warnings and log messages up to WARNING in this process, for commands that print findings."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
