"""OpenRLHF's trainers as Ray actors: they start with the weighting, or refuse it, in processes of their own."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from unittest import mock

import pytest
from drivers import openrlhf as driver
from grid.cases import Case
from grid.model import save_model
from stubs import stubbed

with stubbed("deepspeed", "flash_attn", "vllm"):
    import ray
    from openrlhf.trainer import ppo_trainer, ppo_trainer_async

    from pv_trainers import train_openrlhf

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a file of tests
pytestmark = [pytest.mark.slow, pytest.mark.paths]


def prepare_worker():
    from stubs import stubbed
    from trainer_grid import beside

    sys.stubs = stubbed("deepspeed", "flash_attn", "vllm")  # kept, so that it stays entered
    sys.stubs.__enter__()
    beside("openrlhf-0.11.2")


class Strategy:
    def __init__(self, args):
        self.args = args

    def setup_dataloader(self, *args, **settings):
        return []

    def is_rank_0(self):
        return False

    def print(self, *args):
        pass


def found(trainer):
    compute = trainer.experience_maker.compute_advantages_and_returns
    return compute.args[0].spec, os.getpid()


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """The two trainers, as the launcher replaces them, and the arguments that OpenRLHF gives them."""
    folder = tmp_path_factory.mktemp("model")
    save_model(folder)
    (folder / "prompts.jsonl").write_text(
        "\n".join(json.dumps({"input": "w2 w3", "label": "1"}) for _ in range(4))
    )
    args = driver.make_args(Case(groups=((3, 3), (3, 3))), "seq-mean-token-mean")
    args.algo.kl.target, args.algo.kl.horizon, args.algo.dynamic_filtering_enable = None, 1, False
    args.train.seed, args.train.num_episodes = 0, 1
    args.logger = SimpleNamespace(wandb=SimpleNamespace(key=None), tensorboard_dir=None)
    args.ckpt = SimpleNamespace(best_metric_key="", save_steps=-1)
    args.eval = SimpleNamespace(steps=-1)
    args.data = SimpleNamespace(
        disable_fast_tokenizer=False, prompt_dataset=str(folder / "prompts.jsonl"), prompt_probs=None, max_samples=4,
        prompt_split="train", input_template=None, dataloader_num_workers=0, input_key="input", label_key="label",
        apply_chat_template=False, image_key=None,
    )  # fmt: skip
    ray.init(num_cpus=4, include_dashboard=False, runtime_env={"worker_process_setup_hook": prepare_worker})
    with (
        mock.patch.object(ppo_trainer, "PPOTrainer", ppo_trainer.PPOTrainer),
        mock.patch.object(ppo_trainer_async, "TrainingActor", ppo_trainer_async.TrainingActor),
        mock.patch.object(sys, "argv", ["train_openrlhf", "balanced"]),
        mock.patch("runpy.run_module"),
    ):
        train_openrlhf.main()
        yield args, lambda: (str(folder), Strategy(args), None, None, None, None, None)
    ray.shutdown()


def test_the_synchronous_trainer_starts_with_the_mode(started):
    trainer = ppo_trainer.PPOTrainer.remote(*started[1]())
    assert ray.get(trainer.get_max_steps.remote()) == 2  # 4 prompts, 2 responses each, 4 responses an update
    mode, process = ray.get(trainer.__ray_call__.remote(found))
    assert mode == "balanced:0.6@prompt"
    assert process != os.getpid()


def test_the_training_actor_of_the_asynchronous_trainer_starts_with_the_mode(started):
    trainer = ppo_trainer_async.PPOTrainerAsync.remote(*started[1]())
    inner = lambda trainer: ray.get(trainer.trainer_actor.__ray_call__.remote(found))  # noqa: E731
    assert ray.get(trainer.__ray_call__.remote(inner))[0] == "balanced:0.6@prompt"


def test_a_trainer_with_token_mean_does_not_start(started):
    args, arguments = started
    with mock.patch.object(args.actor, "loss_agg_mode", "token-mean"):
        trainer = ppo_trainer.PPOTrainer.remote(*arguments())
        with pytest.raises(
            ray.exceptions.ActorDiedError, match=r"--actor\.loss_agg_mode seq-mean-token-mean"
        ):
            ray.get(trainer.get_max_steps.remote())
