"""AdamW for many runs at once: a learning rate, a gradient norm and a clip for each."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["StackedAdamW"]


class StackedAdamW:
    """`torch.optim.AdamW` and `clip_grad_norm_`, once for each run.

    Parameters have the runs as their first dimension, (R, ...). Held to torch's by
    `examples/lab/tests/test_lab_stacked.py`.
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
        self.steps = torch.zeros_like(lr)
        """(R,) that each run has taken."""

    @torch.no_grad()
    def step(self, active: Tensor | None = None) -> Tensor:
        """Use up the gradients. Returns their norms before the clip, (R,).

        A run takes no step, not even by momentum or decay, whose gradient is not finite (as in verl's engines) or that
        is not `active`, (R,) bool.
        """
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients]).norm(dim=0)
        scale = (self.max_norm / (norms + 1e-6)).clamp(max=1.0)
        taken = norms.isfinite() if active is None else norms.isfinite() & active
        self.steps += taken
        steps = self.steps.clamp(min=1)
        new_first, new_second = ((1 - beta) * taken for beta in self.betas)
        step = self.lr * taken / (1 - self.betas[0] ** steps)
        of_root = 1 - self.betas[1] ** steps
        decayed = 1 - self.lr * taken * self.weight_decay
        for parameter, gradient, first, second in zip(
            self.parameters, gradients, self.first, self.second, strict=True
        ):
            shape = (-1, *[1] * (parameter.dim() - 1))
            gradient = torch.where(taken.view(shape), gradient * scale.view(shape), 0.0)
            first.lerp_(gradient, new_first.view(shape))
            second.lerp_(gradient.square(), new_second.view(shape))
            root = (second / of_root.view(shape)).sqrt_().add_(self.epsilon)
            parameter.mul_(decayed.view(shape))
            parameter.sub_(step.view(shape) * first / root)
            parameter.grad = None
        return norms
