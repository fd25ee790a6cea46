"""The contract of each patch with the installed verl, and what a patch does when verl has changed."""

import sys
import types

import pytest
from fork_server import run_fresh

from pv_cpu.errors import UnsupportedOnCpuError, VerlChangedError
from pv_cpu.patches import PATCHES, offload_policy, poll_interval, process_group, tools, trl_beside


def in_verl(code: str) -> str:
    """Run code in a process with the platform active."""
    done = run_fresh(code, VERL_PLATFORM="cpu")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_process_groups_come_up_although_verl_names_the_cpu_twice():
    code = """
import os, torch
os.environ.update(RANK="0", WORLD_SIZE="1", DIST_INIT_METHOD="tcp://127.0.0.1:0")
from verl.utils import distributed
distributed.initialize_global_process_group_ray()
t = torch.ones(1); torch.distributed.all_reduce(t); print(torch.distributed.get_backend(), t.item())
"""
    assert in_verl(code).endswith("gloo 1.0")


def test_the_sft_trainer_comes_up_with_the_ranks_of_torchrun():
    code = """
import os, torch
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
from verl.utils import distributed
print(distributed.initialize_global_process_group())
t = torch.ones(1); torch.distributed.all_reduce(t); print(torch.distributed.get_backend(), t.item())
"""
    assert in_verl(code).splitlines()[-2:] == ["(0, 0, 1)", "cpu:gloo 1.0"]


def test_verl_still_needs_the_process_group_patch():
    code = """
import os, inspect
from verl.utils.distributed import initialize_global_process_group_ray as patched
original = inspect.unwrap(patched)
print(original is not patched)
os.environ.update(RANK="0", WORLD_SIZE="1", DIST_INIT_METHOD="tcp://127.0.0.1:0")
try: original()
except Exception as error: print(type(error).__name__)
"""
    assert in_verl(code).split() == ["True", "ValueError"]


def test_a_critic_has_one_output_and_the_attention_of_its_configuration(tmp_path):
    code = f"""
import torch
from transformers import AutoConfig, Qwen3Config, Qwen3ForCausalLM
from verl.utils.model import load_valuehead_model
folder = {str(tmp_path)!r}
sizes = dict(vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=1, head_dim=8)
actor = Qwen3ForCausalLM(Qwen3Config(num_attention_heads=2, num_key_value_heads=1, **sizes))
actor.save_pretrained(folder)
config = AutoConfig.from_pretrained(folder, attn_implementation="sdpa", num_labels=1)
critic = load_valuehead_model(folder, torch.float32, config, False)
print(critic(torch.tensor([[1, 2, 3]])).logits.shape, critic.config._attn_implementation)
"""
    assert in_verl(code).splitlines()[-1] == "torch.Size([1, 3, 1]) sdpa"


@pytest.mark.parametrize(("address", "sizes"), [("127.0.0.1:1", [None, None, None]), ("", [32, 8, 10**9])])
def test_a_run_that_joins_a_ray_cluster_leaves_out_the_sizes_of_a_local_one(address, sizes):
    code = """
from omegaconf import OmegaConf
from verl.trainer.constants_ppo import get_ppo_ray_runtime_env
from pv_cpu.patches.ray_cluster import SIZES
sizes = {"num_cpus": 32, "num_gpus": 8, "object_store_memory": 10**9, "address": "local" if LOCAL else None}
config = OmegaConf.create({"ray_kwargs": {"ray_init": sizes}})
get_ppo_ray_runtime_env(config)
print([config.ray_kwargs.ray_init[name] for name in SIZES])
""".replace("LOCAL", str(not address))
    done = run_fresh(code, VERL_PLATFORM="cpu", RAY_ADDRESS=address)
    assert done.stdout.splitlines()[-1:] == [str(sizes)], done.stderr


def test_memory_is_not_pinned_and_modules_share_the_patched_policy():
    code = """
from verl.workers.engine.fsdp import transformer_impl as t
from verl.utils import fsdp_utils as u
print(t.CPUOffloadPolicy(pin_memory=True).pin_memory, t.CPUOffloadPolicy is u.CPUOffloadPolicy,
      isinstance(t.CPUOffloadPolicy(), __import__("torch").distributed.fsdp.CPUOffloadPolicy))
"""
    assert in_verl(code).split() == ["False", "True", "True"]


def test_the_poll_interval_is_short_and_can_be_set(monkeypatch):
    code = """
import logging; logging.disable()
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
for cls in (ReplayBuffer, ReplayBufferAsync):
    print(cls("sync", {}, None, "drop", {}).poll_interval)
"""
    assert in_verl(code).split() == ["0.1", "0.1"]
    monkeypatch.setenv(poll_interval.VARIABLE, "0.5")
    assert poll_interval.poll_seconds() == 0.5
    monkeypatch.setenv(poll_interval.VARIABLE, "fast")
    with pytest.raises(UnsupportedOnCpuError, match="PV_CPU_POLL_SECONDS='fast' is not a positive number"):
        poll_interval.poll_seconds()


@pytest.mark.parametrize(("variables", "seconds"), [({}, "2.0"), ({"PV_CPU_POLL_SECONDS": "0.2"}, "0.2")])
def test_the_poll_interval_of_a_gpu_is_verls_unless_it_is_set(variables, seconds):
    code = """
import logging; logging.disable()
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
import pv_cpu.patches.offload_policy as other, verl.utils.fsdp_utils as utils
print(ReplayBuffer("sync", {}, None, "drop", {}).poll_interval, other.tools.is_patched(utils.CPUOffloadPolicy))
"""
    done = run_fresh(code, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == [seconds, "False"]


def test_both_rollout_registries_and_the_engine_registry_know_the_cpu():
    code = """
from verl.workers.rollout.base import get_rollout_class
from verl.workers.rollout.replica import get_rollout_replica_class
from verl.workers.engine import EngineRegistry
print(get_rollout_class("pv_cpu").__name__, get_rollout_replica_class("pv_cpu").__name__,
      EngineRegistry.get_engine_cls("language_model", "fsdp2").__name__)
"""
    assert in_verl(code).split() == ["ServerAdapter", "PvCpuReplica", "FSDPEngineWithLMHead"]


def test_a_module_that_took_the_original_earlier_gets_the_replacement(monkeypatch):
    def original(timeout_second=None, backend=None):
        return backend

    owner, early = types.ModuleType("verl.fake_owner"), types.ModuleType("verl.fake_early")
    setattr(owner, process_group.NAME, original)
    setattr(early, process_group.NAME, original)
    monkeypatch.setitem(sys.modules, early.__name__, early)
    process_group.patch(owner)
    assert getattr(early, process_group.NAME)() == "cpu:gloo"
    assert getattr(early, process_group.NAME)(backend="nccl") == "nccl"


@pytest.mark.parametrize("patch", [process_group, offload_policy])
def test_a_patch_that_is_applied_twice_wraps_once(patch):
    owner = types.ModuleType("verl.fake")
    owner.initialize_global_process_group_ray = lambda timeout_second=None, backend=None: backend
    owner.get_ppo_ray_runtime_env = lambda config=None: config
    owner.CPUOffloadPolicy = type("Policy", (), {"__init__": lambda self, pin_memory=True: None})
    owner.is_trl_available = lambda: False
    patch.patch(owner)
    first = dict(vars(owner))
    patch.patch(owner)
    assert vars(owner) == first


@pytest.mark.parametrize("has_class", [True, False])
def test_a_trl_without_a_value_head_is_none_for_verl(has_class, monkeypatch):
    trl = types.ModuleType("trl")
    if has_class:
        trl.AutoModelForCausalLMWithValueHead = type("Model", (), {})
    monkeypatch.setitem(sys.modules, "trl", trl)
    owner = types.ModuleType("verl.fake")
    owner.is_trl_available = lambda: True
    trl_beside.patch(owner)
    assert owner.is_trl_available() is has_class


@pytest.mark.parametrize("patch", PATCHES)
def test_a_name_that_is_gone_is_an_error_that_names_the_version(patch):
    with pytest.raises(
        VerlChangedError, match=r"verl \S+ in \S+ is not as pv-cpu expects it: verl.fake has no"
    ):
        patch.patch(types.ModuleType("verl.fake"))


def test_a_parameter_that_is_gone_is_an_error_that_names_it():
    owner = types.ModuleType("verl.fake")
    owner.initialize_global_process_group_ray = lambda timeout: None
    with pytest.raises(VerlChangedError, match=r"takes no \['timeout_second', 'backend'\]"):
        process_group.patch(owner)


def test_the_sentinel_of_a_base_class_does_not_count_as_ones_own():
    class Base: ...

    class Derived(Base): ...

    tools.mark(Base)
    assert (tools.is_patched(Base), tools.is_patched(Derived)) == (True, False)
