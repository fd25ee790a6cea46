"""A micro-batch in the form in which verl's workers hold it, for feeding verl's own loss functions."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu
from verl.workers.config import ActorConfig, PolicyLossConfig

from pv_rl.losses.mode import find_mode
from pv_rl.verl_adapter.batch_weights import batch_fields
from pv_rl.verl_adapter.row_weights import row_fields


def nested(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def actor_config(loss_agg_mode: str, loss_mode: str = "vanilla", **overrides) -> ActorConfig:
    settings = {"strategy": "fsdp2", "rollout_n": 4, "ppo_micro_batch_size_per_gpu": 2, "use_kl_loss": True}
    policy_loss = PolicyLossConfig(loss_mode=loss_mode)
    return ActorConfig(loss_agg_mode=loss_agg_mode, policy_loss=policy_loss, **(settings | overrides))


class Step:
    """A step of a policy with one free log-prob a token, so that the gradient is known a token at a time."""

    def __init__(self, lengths: list[int], groups: list[str], spec: str | None = None, seed: int = 0):
        generator = torch.Generator().manual_seed(seed)
        draw = lambda n, scale=1.0: torch.randn(n, generator=generator) * scale  # noqa: E731
        self.lengths, self.groups = lengths, groups
        self.old_log_probs = [draw(n, 0.3) - 1.0 for n in lengths]
        self.log_probs = [(old + draw(len(old), 0.05)).requires_grad_() for old in self.old_log_probs]
        self.entropies = [draw(n).abs().requires_grad_() for n in lengths]
        self.ref_log_probs = [old + draw(len(old), 0.1) for old in self.old_log_probs]
        self.advantages = [draw(1).expand(n) for n in lengths]
        self.masks = [torch.ones(n, dtype=torch.long) for n in lengths]
        mode = find_mode(spec) if spec else None
        self.fields, self.totals = {}, {}
        if mode and mode.scope == "prompt":
            self.fields = row_fields([mode], lengths, groups)
        elif mode:
            self.fields, self.totals = batch_fields(mode, [lengths], 0, rows=len(lengths))

    def micro_batch(
        self, rows: list[int], *, global_batch_size: int, batch_num_tokens: int, dp_size: int = 1
    ):
        """`(model_output, data)` of some rows, as in verl/workers/engine/fsdp/transformer_impl.py."""
        prompt = torch.zeros(2, dtype=torch.long)
        pick = lambda field: nested([field[row].contiguous() for row in rows])  # noqa: E731
        ids = [torch.ones(self.lengths[row], dtype=torch.long) for row in rows]
        data = TensorDict(
            {
                "prompts": nested([prompt for _ in rows]),
                "responses": nested(ids),
                "response_mask": pick(self.masks),
                "loss_mask": pick(self.masks),
                "old_log_probs": pick(self.old_log_probs),
                "ref_log_prob": pick(self.ref_log_probs),
                "advantages": pick(self.advantages),
                **{name: nested([field[row] for row in rows]) for name, field in self.fields.items()},
            },
            batch_size=len(rows),
        )
        tu.assign_non_tensor(
            data,
            dp_size=dp_size,
            batch_num_tokens=batch_num_tokens,
            global_batch_size=global_batch_size,
            **self.totals,
        )

        # The model's output stands one token to the left: the prompt's last position predicts the first token.
        def shifted(field: list[torch.Tensor]) -> torch.Tensor:
            return nested([torch.cat([torch.zeros(1), field[row], torch.zeros(1)]) for row in rows])

        return {"log_probs": shifted(self.log_probs), "entropy": shifted(self.entropies)}, data

    def gradients(self) -> list[torch.Tensor]:
        """d loss / d log_prob of each token, then d loss / d entropy."""
        return [tensor.grad for tensor in self.log_probs + self.entropies]
