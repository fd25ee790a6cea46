"""`pv-rl doctor`: will this environment work? Each check is one line, with the remedy where it fails."""

from __future__ import annotations

import functools
import importlib.util
import json
import logging
import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal

import pv_rl
from pv_rl.errors import PvRlError

if TYPE_CHECKING:
    import httpx

__all__ = ["JUDGE_KEY", "JUDGE_URL", "Finding", "examine"]

JUDGE_URL, JUDGE_KEY = "PV_RL_JUDGE_URL", "PV_RL_JUDGE_API_KEY"
PACKAGES = ("torch", "verl", "ray", "transformers", "TransferQueue", "vllm", "pv-cpu")
OPTIONAL = ("vllm", "pv-cpu")
REWARDS = "pkg://pv_rl.rewards.named"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found."""

    state: Literal["ok", "note", "wrong"]
    """`wrong` makes the exit code 1; `note` is worth knowing and no more."""
    text: str
    remedy: str = ""
    """What to do about it, if there is something to do."""


def examine(run: Sequence[str] = ()) -> dict[str, Finding]:
    """Run every check, by name. One that breaks down is a finding itself, and does not stop the others.

    Args:
        run: `run=NAME` and overrides, as for `pv-rl train`; empty: the check of the config takes the quick start's.
    """
    checks: dict[str, Callable[[], Finding]] = {
        "python": _python,
        "packages": _packages,
        "device": _device,
        "driver": _driver,
        "weights": _weights,
        "reward": _reward,
        "config": lambda: _config(run),
        "worker": _worker,
        "judge": _judge,
    }
    return {name: _guarded(check) for name, check in checks.items()}


def _guarded(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except ModuleNotFoundError as error:
        return Finding(state="wrong", text=f"{error.name} is missing", remedy="as for packages")
    except PvRlError as error:
        return Finding(state="wrong", text=str(error))
    except Exception as error:  # noqa: BLE001 - a doctor reports what it meets, whatever that is
        remedy = "see the lines above; if they are all well, report this line as a bug of pv-rl"
        return Finding(state="wrong", text=f"{type(error).__name__}: {error}", remedy=remedy)


def _python() -> Finding:
    text = f"Python {platform.python_version()}, pv-rl {pv_rl.__version__}"
    if (3, 10) <= tuple(map(int, platform.python_version_tuple()[:2])) < (3, 13):
        return Finding(state="ok", text=text)
    return Finding(state="wrong", text=text, remedy="verl needs Python 3.10, 3.11 or 3.12")


def _packages() -> Finding:
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    text = ", ".join(f"{name} {number or 'missing'}" for name, number in found.items())
    missing = [name for name, number in found.items() if number is None and name not in OPTIONAL]
    if missing:
        return Finding(
            state="wrong",
            text=text,
            remedy="pip install 'pv-rl[verl]' (torch first, to choose its build)",
        )
    return Finding(state="ok", text=text)


def _device() -> Finding:
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return Finding(state="ok", text=f"{len(names)} GPU: {', '.join(sorted(set(names)))}")
    if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
        text = "CPU, through pv-cpu (VERL_PLATFORM=cpu)"
        if importlib.util.find_spec("pv_cpu") is None:
            return Finding(state="wrong", text=text, remedy="pip install pv-cpu")
        return Finding(state="ok", text=text)
    text = "no GPU; set VERL_PLATFORM=cpu to train small models here (pv-rl quickstart does it for you)"
    return Finding(state="note", text=text)


def _adapter_state() -> dict[str, Any]:
    """Import verl as every process of a run does, and say whether that loaded us. Also runs in a Ray worker."""
    import sys

    import verl  # noqa: F401  (the import loads the plugins)

    if "pv_rl.verl_adapter" not in sys.modules:
        return {"loaded": False}  # nor is pv-cpu, without which verl may not even import the rest
    from verl.utils.import_utils import load_extern_object

    from pv_rl.losses import resolve_mode
    from pv_rl.plugins import broken_plugins, loss_modes, refused, rewards
    from pv_rl.verl_adapter import contract

    try:
        contract.require(resolve_mode("balanced"))
        contract.require_rewards()
        load_extern_object(module_path=REWARDS, object_name="verdict")
        problem = ""
    except PvRlError as error:
        problem = str(error)
    return {
        "loaded": True,
        "problem": problem,
        "modes": list(loss_modes()),
        "left_out": [f"{name}: {why}" for name, why in broken_plugins().items()] + list(refused().values()),
        "rewards": list(rewards()),
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
        return Finding(state="wrong", text=state["problem"], remedy="do what the line says")
    text = f"verl loads pv-rl in {where}; modes {', '.join(state['modes'])}; rewards {', '.join(state['rewards'])}"
    if state["left_out"]:
        text += f"; left out: {'; '.join(state['left_out'])}"
        return Finding(state="note", text=text, remedy="fix or uninstall what is left out")
    return Finding(state="ok", text=text)


def _driver() -> Finding:
    return _adapter_finding(_adapter_state(), "this process")


def _weights() -> Finding:
    from pv_rl.losses import response_weights

    weights = response_weights("balanced:0.6", [1, 2, 5], "aaa").tolist()
    right = all(abs(w - x) < 1e-12 for w, x in zip(weights, [0.25, 0.15, 0.09], strict=True))
    text = f"balanced:0.6 weighs lengths 1, 2, 5 by {', '.join(f'{w:.2f}' for w in weights)}"
    if right:
        return Finding(state="ok", text=text)
    return Finding(state="wrong", text=text, remedy="0.25, 0.15, 0.09 are right: reinstall pv-rl")


def _reward() -> Finding:
    import asyncio

    from pv_rl.rewards.named import scorer

    row = asyncio.run(scorer("verdict")("doctor", "Step 2 fails.\n**### False**", "False"))
    text = f"the reward verdict scores a right rejection {row['score']:g}"
    if row["score"] == 1.0:
        return Finding(state="ok", text=text)
    return Finding(state="wrong", text=text, remedy="1 is right: reinstall pv-rl")


def _config(arguments: Sequence[str]) -> Finding:
    import verl  # noqa: F401  (its config is what ours stands on)

    from pv_lab.quickstart.settings import CONFIG_NAME
    from pv_rl.recipes import check, compose
    from pv_rl.recipes.choices import MODE, remarks
    from pv_rl.recipes.compose import split_run, value
    from pv_rl.verl_adapter.validation import validate

    run, overrides = split_run(arguments or [f"run={CONFIG_NAME}"])
    config = compose(run, overrides)
    if arguments:
        check(config, to_run=False, overrides=overrides)
        validate(config)
    text = f"run={run} composes with verl's ppo_trainer, {value(config, MODE)}"
    if remarked := " ".join(remarks(config)):
        return Finding(
            state="note", text=f"{text}; {remarked}", remedy="choose another weighting if that is not meant"
        )
    return Finding(state="ok", text=text)


def _worker() -> Finding:
    import ray

    # An address in the environment would make this a visit to somebody's cluster.
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


def _judge() -> Finding:
    import httpx

    from pv_judge.keys import Key, unlogged

    address, key = os.environ.get(JUDGE_URL), os.environ.get(JUDGE_KEY, "").strip()
    if not address:
        return Finding(state="ok", text=f"none configured ({JUDGE_URL} is not set)")
    if not (key.isascii() and key.isprintable()):
        text = f"{JUDGE_KEY} holds characters that no key has (a line break, say)"
        return Finding(state="wrong", text=text, remedy=f"set {JUDGE_KEY} again")
    try:
        url = httpx.URL(address.rstrip("/") + "/models")
        shown = str(url.copy_with(userinfo=b"", query=None))
        secret = Key(key)
        with unlogged():
            models = [secret.blot(one)[:80] for one in _list_models(url, secret.headers())[:3]]
    except httpx.HTTPStatusError as error:
        problem = f"HTTP {error.response.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, RecursionError) as error:
        problem = type(error).__name__  # its text may quote what was sent, the key included
    else:
        return Finding(state="ok", text=f"{secret.blot(shown)} lists {', '.join(models) or 'no model'}")
    return Finding(
        state="wrong",
        text=f"what {JUDGE_URL} names does not answer like an OpenAI-compatible endpoint: {problem}",
        remedy=f"start it, or correct {JUDGE_URL} (it ends in /v1) or {JUDGE_KEY}",
    )


def _list_models(url: httpx.URL, headers: dict[str, str]) -> list[str]:
    """The ids that `GET /models` gives, within ten seconds and a megabyte in all."""
    import httpx

    deadline, body = time.monotonic() + 10, b""
    with httpx.stream("GET", url, headers=headers, timeout=10) as answer:
        answer.raise_for_status()
        for chunk in answer.iter_bytes():
            body += chunk
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout("ten seconds in all")
            if len(body) > 1_000_000:
                raise ValueError("the list of models is longer than a megabyte")
    return [str(model["id"]) for model in json.loads(body)["data"]]
