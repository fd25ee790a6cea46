"""A trainer with the methods of verl's that the adapter wraps, for tests that replace some of them."""

from __future__ import annotations

from typing import Any


class FakeTrainer:
    def __init__(self, config: Any = None) -> None:
        self.config, self.global_steps, self.calls = config, 1, []

    def fit(self):
        self.calls.append("fit")

    def step(self, metrics, timing_raw):
        self.calls.append("step")

    def _compute_advantage(self, batch, metrics):
        return batch

    def _update_actor(self, batch, metrics):
        self.calls.append("update_actor")
        return batch

    def _update_critic(self, batch, metrics):
        self.calls.append("update_critic")
        return batch

    def _save_checkpoint(self):
        self.calls.append(f"save {self.global_steps}")

    def _load_checkpoint(self):
        self.calls.append("load")

    def _maybe_log_val_generations(self, inputs, outputs, scores):
        self.calls.append(f"show {len(outputs)}")

    def _val_metrics_update(self, data_sources, sample_uids, reward_extra_infos_dict, sample_turns, **others):
        return {"val-core/x/acc/mean@1": 0.5, **others}
