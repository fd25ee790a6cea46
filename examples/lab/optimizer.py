"""AdamW for many runs at once: a learning rate, a gradient norm and a clip for each."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["StackedAdamW"]


class StackedAdamW:
    """`torch.optim.AdamW` and `clip_grad_norm_`, once for each run.

    Parameters have the runs as their first dimension, (R, ...). Held to torch's by `tests/unit/test_lab_stacked.py`.
    """

    def __init__(
        self,
        parameters: list[Tensor],
        *,
        lr: Tensor,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.01,
        max_norm: float = 1.0,
        epsilon: float = 1e-8,
    ) -> None:
        """`lr` is (R,); the other defaults are those of verl's actor (verl/trainer/config/optim/fsdp.yaml)."""
        self.parameters, self.lr, self.betas = parameters, lr, betas
        self.weight_decay, self.max_norm, self.epsilon = weight_decay, max_norm, epsilon
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps = 0

    @torch.no_grad()
    def step(self) -> Tensor:
        """Use up the gradients. Returns their norms before the clip, (R,)."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients]).norm(dim=0)
        scale = (self.max_norm / (norms + 1e-6)).clamp(max=1.0)
        self.steps += 1
        first_beta, second_beta = self.betas
        step = self.lr / (1 - first_beta**self.steps)
        for parameter, gradient, first, second in zip(
            self.parameters, gradients, self.first, self.second, strict=True
        ):
            shape = (-1, *[1] * (parameter.dim() - 1))
            gradient = gradient * scale.view(shape)
            first.lerp_(gradient, 1 - first_beta)
            second.mul_(second_beta).addcmul_(gradient, gradient, value=1 - second_beta)
            root = (second / (1 - second_beta**self.steps)).sqrt_().add_(self.epsilon)
            parameter.mul_(1 - self.lr.view(shape) * self.weight_decay)
            parameter.sub_(step.view(shape) * first / root)
            parameter.grad = None
        return norms
