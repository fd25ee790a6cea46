"""Batches of made rows, with what verl's trainer sends along to its training worker."""

from __future__ import annotations

from typing import Any

from calibration.cases import Case


def make_data(batch: Any, part: str, case: Case, config: Any) -> Any:
    """What the trainer sends to the worker for this part."""
    data = batch.copy()
    if part == "update":
        data = with_old(data, data["response_mask"], config, case)
    prepare(data, part, case, config)
    return data


def make_batch(case: Case, vocabulary: int) -> Any:
    """Rows of random ids, as an agent loop puts them (verl/trainer/ppo/v1/agent_loop_tq.py)."""
    import torch
    from tensordict import TensorDict

    generator = torch.Generator().manual_seed(0)
    columns: dict[str, list[Any]] = {}
    for prompt, response in case.lengths():
        ids = torch.randint(2, vocabulary, (prompt + response,), generator=generator)
        row = {
            "prompts": ids[:prompt],
            "responses": ids[prompt:],
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "position_ids": torch.arange(len(ids)),
            "response_mask": torch.ones(response, dtype=torch.long),
            "loss_mask": torch.ones(response, dtype=torch.long),
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    nested = {
        name: torch.nested.as_nested_tensor(values, layout=torch.jagged) for name, values in columns.items()
    }
    return TensorDict(nested, batch_size=case.rows)


def with_old(data: Any, mask: Any, config: Any, case: Case) -> Any:
    """Old and reference log-probs, advantages of both signs, and the weights of the rows for a mode of pv-rl."""
    import torch

    from pv_rl.losses import resolve_mode

    offsets = mask.offsets()
    zeros = torch.zeros(int(offsets[-1]))

    def nested(values: Any) -> Any:
        return torch.nested.nested_tensor_from_jagged(values, offsets)

    if "old_log_probs" not in data:
        data["old_log_probs"] = nested(zeros - 10.0)
    data["ref_log_prob"] = data["old_log_probs"]
    signs = torch.tensor([1.0 if row % 2 else -1.0 for row in range(case.rows)])
    data["advantages"] = nested(signs.repeat_interleave(offsets.diff()))
    if case.mode == "balanced":
        weights = 1.0 / (case.rows * offsets.diff().float())
        data[f"pv_rl_row_weight/{resolve_mode(case.mode).spec}"] = nested_rows(weights * case.rows)
    return data


def nested_rows(values: Any) -> Any:
    import torch

    return torch.nested.as_nested_tensor([value[None] for value in values], layout=torch.jagged)


def prepare(data: Any, part: str, case: Case, config: Any) -> None:
    """What the trainer sends along (verl/trainer/ppo/v1/trainer_base.py)."""
    from verl.utils import tensordict_utils as tu

    common = {
        "temperature": config.actor_rollout_ref.rollout.temperature,
        "use_remove_padding": case.packed,
        "calculate_entropy": part == "old",
        "compute_loss": False,
        "pad_token_id": 0,
    }
    if part == "update":
        common |= {
            "global_batch_size": case.rows,
            "mini_batch_size": case.rows,
            "epochs": 1,
            "seed": 0,
            "dataloader_kwargs": {"shuffle": False},
        }
        common.pop("compute_loss")
    for name, value in common.items():
        tu.assign_non_tensor_data(data, name, value)
