"""The seams of verl that the adapter relies on, and what happens when one is gone."""

from __future__ import annotations

import importlib
import sys

import pytest
from fork_server import run_fresh

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

from pv_rl.verl_adapter import contract
from pv_rl.verl_adapter.install import PATCHES, install

TRY_BOTH = """
from verl.workers.config import ActorConfig
settings = dict(strategy="fsdp2", rollout_n=2, ppo_micro_batch_size_per_gpu=1)
ActorConfig(loss_agg_mode="token-mean", **settings)
print("stock mode: ok")
try:
    ActorConfig(loss_agg_mode="balanced", **settings)
    print("balanced: ok")
except RuntimeError as error:
    print(type(error).__name__, error)
"""


def run(code: str, **env: str) -> str:
    done = run_fresh(code, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("seam", contract.SEAMS, ids=lambda seam: f"{seam.module}.{seam.attribute}")
def test_the_installed_verl_has_the_seam(seam):
    assert seam.problem(importlib.import_module(seam.module)) is None


def test_every_patched_module_has_a_seam_that_is_checked_first():
    assert set(PATCHES) == {seam.module for seam in contract.SEAMS}


@pytest.mark.parametrize(
    ("module", "owner"),
    [
        ("verl.trainer.ppo.v1.trainer_base", "PPOTrainer"),
        ("verl.trainer.ppo.ray_trainer", "RayPPOTrainer"),
        ("verl.experimental.separation.ray_trainer", "SeparateRayPPOTrainer"),
        ("verl.utils.tracking", "Tracking"),
    ],
)
def test_each_function_of_verl_is_wrapped_once(module, owner):
    wrapped = {}
    for name, function in vars(getattr(importlib.import_module(module), owner)).items():
        ours = 0
        while function is not None:
            ours += "verl_adapter" in getattr(getattr(function, "__code__", None), "co_filename", "")
            function = getattr(function, "__wrapped__", None)
        wrapped |= {name: ours} if ours else {}
    assert wrapped
    assert set(wrapped.values()) == {1}


def test_a_trainer_that_has_changed_is_refused_for_scope_prompt_alone():
    change = (
        "from wrapt import register_post_import_hook\n"
        "def change(module):\n"
        "    del module.PPOTrainer._compute_advantage\n"
        "register_post_import_hook(change, 'verl.trainer.ppo.v1.trainer_base')\n"
    )
    by_prompt = run(change + TRY_BOTH)
    assert "trainer_base has no PPOTrainer._compute_advantage" in by_prompt
    assert "balanced: ok" in run(change + TRY_BOTH.replace('"balanced"', '"balanced@batch"'))
    # In the task runner the trainer is there before the config is.
    trainer_first = change + "import verl.trainer.ppo.v1.trainer_base\n"
    assert "balanced: ok" in run(trainer_first + TRY_BOTH.replace('"balanced"', '"balanced@batch"'))


def test_importing_verl_loads_the_adapter_and_installing_again_changes_nothing():
    import verl.trainer.ppo.core_algos as core_algos

    assert "pv_rl.verl_adapter" in sys.modules
    before = core_algos.agg_loss
    install()
    assert core_algos.agg_loss is before
    assert core_algos.agg_loss.__wrapped__.__module__ == core_algos.__name__
    assert not hasattr(core_algos.agg_loss.__wrapped__, "__wrapped__")


def test_references_imported_by_name_before_us_are_replaced():
    out = run(
        "import os; os.environ['VERL_USE_EXTERNAL_PLUGINS'] = 'none'\n"
        "import verl.workers.engine_workers as workers, verl.trainer.distillation.losses as distillation\n"
        "early = distillation.agg_loss, workers.ppo_loss\n"
        "import pv_rl.verl_adapter, verl.workers.utils.losses as losses, verl.trainer.ppo.core_algos as core\n"
        "print(distillation.agg_loss is losses.agg_loss is core.agg_loss is not early[0])\n"
        "print(workers.ppo_loss is distillation.ppo_loss is losses.ppo_loss is not early[1])"
    )
    assert out.split() == ["True", "True"]


def test_with_the_adapter_both_kinds_of_mode_work():
    assert run(TRY_BOTH).splitlines() == ["stock mode: ok", "balanced: ok"]


def test_without_the_adapter_verl_refuses_in_its_own_words():
    with pytest.raises(AssertionError, match="Invalid loss_agg_mode: balanced"):
        run(TRY_BOTH, VERL_USE_EXTERNAL_PLUGINS="none")


def test_an_unknown_verl_runs_its_own_modes_and_refuses_ours_naming_both_versions():
    pretend = (
        "import importlib.metadata as m; real = m.version\n"
        "m.version = lambda name: '0.10.0' if name == 'verl' else real(name)\n"
    )
    check = "\nimport verl.trainer.ppo.core_algos as core; print(hasattr(core.agg_loss, '__wrapped__'))"
    stock, ours, patched = run(pretend + TRY_BOTH + check).splitlines()
    assert stock == "stock mode: ok"
    assert ours.startswith("VerlError")
    assert "0.10.0" in ours
    assert "verl 0.9.x" in ours
    assert patched == "False"


def test_a_changed_signature_is_refused_by_name_and_verl_is_left_alone():
    change = (
        "from wrapt import register_post_import_hook\n"
        "def change(module):\n"
        "    real = module.agg_loss\n"
        "    module.agg_loss = lambda loss_mat, mode, **kw: real(loss_mat, loss_agg_mode=mode, **kw)\n"
        "register_post_import_hook(change, 'verl.trainer.ppo.core_algos')\n"
    )
    check = "\nimport verl.trainer.ppo.core_algos as core; print(core.agg_loss.__name__)"
    stock, ours, name = run(change + TRY_BOTH + check).splitlines()
    assert stock == "stock mode: ok"
    assert "agg_loss(loss_mat, mode, kw) does not begin with (loss_mat, loss_mask, loss_agg_mode" in ours
    assert name == "<lambda>"
