"""TRL training program: TRL's `GRPOTrainer` on the lab's verl config, for `pv-rl quickstart --trainer trl`.

    python -m pv_lab.quickstart.trl_main --config-path pkg://pv_rl.hydra_configs.runs --config-name lab cluster=cpu ...

It takes the arguments of `python -m verl.trainer.main_ppo`. It writes metrics and rollouts in verl's format and with
verl's names, so that the display, `pv-rl report` and `pv-rl watch` can read the runs of both trainers.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hydra
import pyarrow.parquet as pq
import torch
from datasets import Dataset
from omegaconf import DictConfig
from transformers import AutoTokenizer, PreTrainedModel, TrainerCallback, TrainerState
from trl import GRPOConfig

from pv_lab.evaluate import evaluate, held_out
from pv_lab.prepare import DIFFICULTY, TEST_ROWS, TEST_SEED
from pv_lab.quickstart.curves import HELD_OUT
from pv_rl.metric_names import TOKEN_WEIGHT_MAX, TOKEN_WEIGHT_MIN, UPDATE_MASS
from pv_trainers.trl import WeightedGRPOTrainer
from pv_trainers.trl_rewards import reward_function

__all__ = ["grpo_config", "train"]

NAMES = {
    "reward": "critic/score/mean",
    "completions/mean_length": "response_length/mean",
    "grad_norm": "actor/grad_norm",
    "learning_rate": "actor/lr",
    "entropy": "actor/entropy",
    "kl": "actor/kl_loss",
    **{name: f"actor/{name}" for name in (UPDATE_MASS, TOKEN_WEIGHT_MAX, TOKEN_WEIGHT_MIN)},
}
"""verl's names of what the trainer logs. Every other metric keeps its name."""


def grpo_config(config: DictConfig) -> GRPOConfig:
    """TRL's settings that are equivalent to the lab's verl config, with one update a step."""
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    return GRPOConfig(
        output_dir=config.run_dir,
        seed=config.seed,
        max_steps=config.trainer.total_training_steps,
        per_device_train_batch_size=config.data.train_batch_size
        * rollout.n,  # TRL counts responses, verl prompts
        num_generations=rollout.n,
        max_completion_length=config.data.max_response_length,
        temperature=rollout.temperature,
        loss_type="dapo",  # a token mean, whose weights loss_agg_mode replaces
        importance_sampling_level={"gspo": "sequence", "vanilla": "token"}[actor.policy_loss.loss_mode],
        epsilon=actor.clip_ratio_low,
        epsilon_high=actor.clip_ratio_high,
        beta=actor.kl_loss_coef if actor.use_kl_loss else 0.0,
        scale_rewards="group" if config.algorithm.norm_adv_by_std_in_grpo else "none",
        learning_rate=actor.optim.lr,
        lr_scheduler_type=actor.optim.lr_scheduler_type,  # TRL's default decays to 0
        weight_decay=actor.optim.weight_decay,
        adam_beta1=actor.optim.betas[0],
        adam_beta2=actor.optim.betas[1],
        max_grad_norm=actor.grad_clip,
        model_init_kwargs={"dtype": "float32"},
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


class MetricsLog(TrainerCallback):
    """Metrics log in verl's format: a line a step, with held-out accuracies at the steps where verl would validate."""

    def __init__(self, config: DictConfig, path: Path) -> None:
        self.path = path
        self.every, self.last = config.trainer.test_freq, config.trainer.total_training_steps
        self.max_tokens = config.data.max_response_length
        self.samples = held_out(TEST_ROWS, DIFFICULTY, TEST_SEED)
        self.began = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._write(0, self._validate(kwargs["model"], 0))

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.began = time.monotonic()

    def on_log(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        step, logs = state.global_step, kwargs["logs"]
        if "reward" not in logs:  # TRL's summary after the last step
            return
        data = {NAMES.get(name, name): value for name, value in logs.items()}
        data["timing_s/step"] = time.monotonic() - self.began
        if step % self.every == 0 or step == self.last:
            data |= self._validate(kwargs["model"], step)
        self._write(step, data)

    def _validate(self, model: PreTrainedModel, step: int) -> dict[str, float]:
        with torch.random.fork_rng(
            devices=[]
        ):  # training draws the same numbers with and without a validation
            rates = evaluate(model, self.samples, seed=step, batch=TEST_ROWS, max_tokens=self.max_tokens)
        return {HELD_OUT["right"]: rates.right_proofs, HELD_OUT["wrong"]: rates.wrong_proofs}

    def _write(self, step: int, data: Mapping[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, "data": data}) + "\n")


def read_rows(path: str) -> Dataset:
    """Rows of verl's parquet file, with the columns that TRL and the reward read."""
    rows = pq.read_table(path, columns=["prompt", "data_source", "reward_model"]).to_pylist()
    return Dataset.from_list([row | {"label": row.pop("reward_model")["ground_truth"]} for row in rows])


def recorded(reward: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """The reward function, which also writes the rollouts that it scores to `STEP.jsonl`, in verl's format."""

    @functools.wraps(reward)
    async def score(**batch: Any) -> list[float | None]:
        scores = await reward(**batch)
        columns = (batch["prompts"], batch["completions"], batch["label"], scores)
        step = batch["trainer_state"].global_step + 1
        lines = [
            {"input": prompt[-1]["content"], "output": response[-1]["content"], "gts": label, "score": score}
            for prompt, response, label, score in zip(*columns, strict=True)
        ]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{step}.jsonl").write_text(
            "".join(f"{json.dumps({**one, 'step': step})}\n" for one in lines)
        )
        return scores

    return score


def train(config: DictConfig) -> None:
    """Train with this config, and write metrics to the file that `VERL_FILE_LOGGER_PATH` names."""
    reward = reward_function(config.reward.custom_reward_function.name)
    model = config.actor_rollout_ref.model.path
    WeightedGRPOTrainer(
        model=model,
        loss_agg_mode=config.actor_rollout_ref.actor.loss_agg_mode,
        reward_funcs=recorded(reward, Path(config.trainer.rollout_data_dir)),
        args=grpo_config(config),
        train_dataset=read_rows(config.data.train_files),
        processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
        callbacks=[MetricsLog(config, Path(os.environ["VERL_FILE_LOGGER_PATH"]))],
    ).train()


if __name__ == "__main__":
    hydra.main(version_base=None)(train)()
