"""Packages, loggers and code that the run imports, looked for without importing them, and the version of verl."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from pv_rl.hookspecs import Finding
from pv_rl.plugins import nearest
from pv_rl.recipes.choices import value
from pv_runs.preflight.findings import note, right, wrong
from pv_runs.preflight.machine import Machine
from pv_runs.preflight.secrets import loggers
from pv_runs.preflight.supervised import is_supervised

__all__ = ["check_packages"]

ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt_llm"}
LOGGERS = {
    "wandb": "wandb",
    "mlflow": "mlflow",
    "swanlab": "swanlab",
    "vemlp_wandb": "volcengine_ml_platform",
    "tensorboard": "tensorboard",
    "console": "",
    "clearml": "clearml",
    "trackio": "trackio",
    "file": "",
    "rl_insight": "rl_insight",
}
"""verl's loggers (verl/utils/tracking.py:43) and the package of each."""
MODULES = ("launch.module", "actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module")
CODE = (
    "reward.custom_reward_function.path",
    "data.custom_cls.path",
    "trainer.v1.sampler.custom_sampler.path",
)
"""A file, or `pkg://` and a module."""


def check_packages(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Whether what the run imports is installed here. A node of a cluster may have other packages."""
    for logger in loggers(config):
        if logger not in LOGGERS:
            text = f"trainer.logger: verl has no logger named {logger!r}; it has {', '.join(LOGGERS)}"
            yield wrong(text + "." + nearest(logger, LOGGERS), "correct trainer.logger")
    needed = dict(_needed(config))
    missing = {one: why for one, why in needed.items() if not machine.has(one)}
    for module, why in missing.items():
        text, remedy = (
            f"{why} needs the package {module}, which is not installed here",
            f"pip install {module}",
        )
        yield (
            note(f"{text}. The nodes of the cluster need it", "") if machine.cluster else wrong(text, remedy)
        )
    from pv_rl.verl_adapter import contract

    if text := contract.remark():  # a seam that the run needs is refused by the check of its settings
        yield note(text)
    found = True
    for key, what in _code(config):
        module = what.removeprefix("pkg://").replace("/", ".")
        is_module = what.startswith("pkg://") or key not in CODE
        path = machine.cwd / Path(what.removeprefix("file://")).expanduser()
        if not (machine.has(module) if is_module else path.is_file()):
            found = False
            yield wrong(f"{key}: there is no {'module' if is_module else 'file'} {what}", f"correct {key}")
        elif not is_module and path.suffix == ".py":
            name_key = f"{key.rpartition('.')[0]}.name"
            if fault := _python_fault(path, str(value(config, name_key) or "")):
                found = False
                yield wrong(f"{key}: {fault}", f"correct the file or {name_key}")
    if found and not missing:
        yield right(f"{', '.join(needed) or 'nothing but verl'} installed")


def _python_fault(path: Path, name: str) -> str:
    """Why a file has no such function or class; empty if it has, or if only running the file would tell."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError) as error:
        return f"{path} cannot be read as Python ({error})"
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    if not name or names & {name, "*", "globals", "setattr", "__getattr__"}:
        return ""
    return f"{path} has nothing named {name}.{nearest(name, names)}"


def _needed(config: DictConfig) -> Iterator[tuple[str, str]]:
    """Packages, and what needs each."""
    engine = str(value(config, "actor_rollout_ref.rollout.name"))
    if engine in ENGINES:
        yield ENGINES[engine], f"actor_rollout_ref.rollout.name={engine}"
    model = "model" if is_supervised(config) else "actor_rollout_ref.model"
    attention = f"{model}.override_config.attn_implementation"
    if (value(config, attention) or "flash_attention_2") == "flash_attention_2":
        yield "flash_attn", f"flash_attention_2 (verl's default; {attention}=sdpa does without)"
    for part in ("actor", "ref"):
        if value(config, f"actor_rollout_ref.{part}.strategy") == "megatron":
            yield "megatron.core", "strategy=megatron"
    for logger in loggers(config):
        if package := LOGGERS.get(logger):
            yield package, f"the logger {logger}"


def _code(config: DictConfig) -> Iterator[tuple[str, str]]:
    for key in (*MODULES, *CODE):
        if isinstance(found := value(config, key), str) and found:
            yield key, found
    if target := OmegaConf.select(config, "launch.prepare._target_"):
        yield "launch.prepare._target_", str(target).rpartition(".")[0]
