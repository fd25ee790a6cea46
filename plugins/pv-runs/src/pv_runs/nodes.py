"""Check of the nodes of a Ray cluster, before verl starts a worker: each has to load pv-rl and see the run's files.

Without it a node that lacks pv-rl fails minutes later in a worker, and the last error of the log is about missing
rollouts.
"""

from __future__ import annotations

import importlib
import logging
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pv_rl.errors import ConfigError, SetupError
from pv_rl.recipes.choices import value

if TYPE_CHECKING:
    from pv_rl.step_state import StepState

__all__ = ["check", "check_folder", "check_nodes"]

logger = logging.getLogger("pv_rl")

SECONDS = 120.0
"""For a node to start a process and import verl. A slower one gets a warning: it may still serve the run."""

SCRATCH = "working_dir_files"
"""Folder in which Ray unpacks the `working_dir` of a job. Ray deletes it some time after the job."""

PACKAGES = ("pv_rl", "verl")

_waiting: list[Callable[[], None]] = []
"""The check of the run whose config was seen last, until the driver has joined Ray."""


def check_folder(path: Path, setting: str) -> None:
    """Refuse a folder of a run that Ray would delete.

    Raises:
        ConfigError: the path is in the working directory that Ray unpacked for a job.
    """
    if SCRATCH in path.absolute().parts:
        raise ConfigError(
            f"{setting} is {path}, in the working directory that Ray unpacked for this job. Ray deletes it after the "
            f"job, and the checkpoints with it. Set {setting} to an absolute path that all nodes share"
        )


def check(state: StepState) -> None:
    """Trainer hook: check the folder of the checkpoints now, and the nodes as soon as the driver has joined Ray.

    Raises:
        ConfigError: Ray would delete the checkpoints.
    """
    config = state.config
    checkpoints = Path(str(value(config, "trainer.default_local_dir"))).absolute()
    check_folder(checkpoints, "trainer.default_local_dir")
    worker = sys.modules.get("ray._private.worker")
    if worker is None:  # not verl's driver, which has imported Ray: a plan, or another look at the config
        return

    def check_run() -> None:
        named = [value(config, f"data.{key}") for key in ("train_files", "val_files")]
        files = [one for some in named for one in ([some] if isinstance(some, str) else some or [])]  # pyright: ignore[reportGeneralTypeIssues]
        model = Path(str(value(config, "actor_rollout_ref.model.path"))).expanduser()
        for warning in check_nodes(checkpoints, model, [Path(str(one)) for one in files]):
            logger.warning("%s", warning)

    _waiting[:] = [check_run]
    hooks = worker._post_init_hooks  # Ray calls them at the end of ray.init
    if _check_waiting not in hooks:
        hooks.append(_check_waiting)


def _check_waiting() -> None:
    while _waiting:
        _waiting.pop()()


def check_nodes(checkpoints: Path, model: Path, data: Sequence[Path] = ()) -> list[str]:
    """Ask every node of the cluster but this one whether it can serve the run. Takes seconds; nothing with one node.

    Args:
        checkpoints: of the run; made if it is not there.
        model: its folder; a name of a model hub is not looked for.
        data: files that one of the nodes reads, whichever verl's driver is started on.

    Returns:
        What is doubtful: a node that does not see checkpoints or data, or that does not answer.

    Raises:
        SetupError: a node cannot load pv-rl, has another version of it or of verl, or lacks the model. Each is named.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = ray.get_runtime_context().get_node_id()
    others = {
        node["NodeID"]: f"node {node['NodeManagerAddress']} ({node['NodeManagerHostname']})"
        for node in ray.nodes()
        # verl places nothing on a node without CPUs and GPUs, as the head of a cluster may be
        if node["Alive"] and node["NodeID"] != here and {"CPU", "GPU"} & set(node["Resources"])
    }
    if not others:
        return []
    wanted = {name: importlib.import_module(name).__version__ for name in PACKAGES}
    checkpoints.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix=".node_check_", dir=checkpoints) as mark:
        paths = [mark.name, *(str(path.absolute()) for path in (model, *data) if path.exists())]
        ask = ray.remote(num_cpus=0, max_retries=0)(_probe(PACKAGES))
        asked = {
            ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(
                paths
            ): node
            for node in others
        }
        done, late = ray.wait(list(asked), num_returns=len(asked), timeout=SECONDS)
        warnings = [f"{others[asked[one]]} did not answer in {SECONDS:.0f} s" for one in late]
        wrong = list[str]()
        for one in done:
            name = others[asked[one]]
            try:
                found = ray.get(one)
            except ray.exceptions.RayError as error:
                wrong.append(f"{name}: {str(error).strip().splitlines()[-1]}")
                continue
            wrong += [f"{name}: {problem}" for problem in _problems(found, wanted)]
            seen = dict(zip(paths, found["seen"], strict=True))
            if not seen.pop(mark.name):
                warnings.append(
                    f"{name} does not see {checkpoints}: its part of each checkpoint stays on that node. Set "
                    "hydra.run.dir (without pv-rl train: trainer.default_local_dir) to a folder that all nodes share"
                )
            if not seen.pop(str(model.absolute()), True):
                wrong.append(f"{name}: the model {model} is not there")
            warnings += [
                f"{name} does not see {path}: the run fails if verl reads its data there"
                for path, there in seen.items()
                if not there
            ]
        for one in late:
            ray.cancel(one, force=True)
    if wrong:
        raise SetupError(
            "nodes of the Ray cluster cannot serve this run: "
            + "; ".join(wrong)
            + f". Install on every node what this one has ({', '.join(f'{name} {wanted[name]}' for name in wanted)}), "
            "under the Python that `ray start` uses there"
        )
    return warnings


def _problems(found: Mapping[str, Any], wanted: Mapping[str, str]) -> list[str]:
    if found["error"]:
        return [found["error"]]
    return [
        f"{name} is {found[name]}, and {version} where the run was started"
        for name, version in wanted.items()
        if found[name] != version
    ]


def _probe(packages: tuple[str, ...]) -> Callable[[list[str]], dict[str, Any]]:
    """A function that Ray sends by value, because this module may be what a node lacks."""

    def probe(paths: list[str]) -> dict[str, Any]:
        import importlib
        import os
        import sys

        found: dict[str, Any] = {"error": "", "seen": [os.path.exists(path) for path in paths]}
        try:
            found |= {name: importlib.import_module(name).__version__ for name in packages}
            if "pv_rl.verl_adapter" not in sys.modules:
                policy = os.environ.get("VERL_USE_EXTERNAL_PLUGINS", "auto")
                found["error"] = f"verl does not load pv-rl (VERL_USE_EXTERNAL_PLUGINS={policy})"
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver reports it
            found["error"] = f"{error} (Python: {sys.executable})"
        return found

    return probe
