"""The seams of verl that the adapter relies on, and what happens when one has changed."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, field
from types import ModuleType

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


@pytest.mark.parametrize(
    "seam", contract.SEAMS, ids=lambda seam: f"{seam.module}.{seam.seam.partition('(')[0]}"
)
def test_the_installed_verl_has_the_seam(seam):
    assert seam.problem(importlib.import_module(seam.module)) is None


def test_every_patched_module_has_a_seam_that_is_checked_first():
    needed = {(seam.module, seam.part) for seam in contract.SEAMS}
    assert needed - set(PATCHES) == {("verl.trainer.ppo.v1.trainer_base", "")}  # which verl 0.8 lacks
    assert set(PATCHES) <= needed


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


@dataclass
class Fields:
    mode: list = field(default_factory=list)


class Raises:
    def __get__(self, *_):
        raise ImportError("no vllm")


class Kinds:
    raises = Raises()

    def plain(self, batch, metrics, more=None): ...
    def other_order(self, metrics, batch): ...
    def by_name(self, batch, *, metrics): ...
    def anything(self, *batch, **metrics): ...
    async def waits(self, batch): ...

    value = property(plain)
    none = None


@pytest.mark.parametrize(
    ("seam", "problem"),
    [
        ("Kinds", None),
        ("Kinds.plain", None),
        ("Kinds.plain(self, batch)", None),
        ("Kinds.plain(self, batch, metrics)", None),
        ("Kinds.plain(self, batch, metrics, more) exactly", None),
        (
            "Kinds.plain(self, batch, metrics) exactly",
            "plain(self, batch, metrics, more) is not (self, batch, metrics)",
        ),
        ("Kinds.plain(self, data)", "plain(self, batch, metrics, more) does not begin with (self, data)"),
        ("Kinds.other_order(self, batch, metrics)", "other_order(self, metrics, batch) does not begin with"),
        ("Kinds.by_name(self, batch, metrics)", "by_name(self, batch, *, metrics) does not begin with"),
        ("Kinds.anything(self, batch)", "anything(self, *batch, **metrics) does not begin with"),
        ("async Kinds.waits(self, batch)", None),
        ("Kinds.waits(self, batch)", "Kinds.waits is async"),
        ("async Kinds.plain(self, batch)", "Kinds.plain is not async"),
        ("Kinds.value(self, batch)", "Kinds.value cannot be called with (self, batch)"),
        ("Kinds.raises(self)", "verl.fake.Kinds.raises cannot be read: ImportError('no vllm')"),
        ("Kinds.none", "verl.fake has no Kinds.none"),
        ("Kinds.gone(self)", "verl.fake has no Kinds.gone"),
        ("Gone.gone", "verl.fake has no Gone.gone"),
        ("Fields.mode", None),  # a field without a class attribute
        ("Fields.modes", "verl.fake has no Fields.modes"),
    ],
)
def test_a_difference_of_a_seam_is_named(seam, problem):
    module = ModuleType("verl.fake")
    module.Kinds, module.Fields = Kinds, Fields
    found = contract.Seam("", "verl.fake", seam).problem(module)
    assert found is problem if problem is None else problem in found


def test_a_verl_without_version_or_folder_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "verl", ModuleType("verl"))
    assert contract.version() == "verl ? in ?"
    sys.modules["verl"].__path__ = []
    assert contract.version() == "verl ? in ?"


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
