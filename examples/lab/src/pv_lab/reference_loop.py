"""The lab's training without Ray: GSPO or PPO on many verifiers at once.

    loop = ReferenceLoop([Run(mode="grpo", seed=0), Run(mode="dapo", seed=0)], Settings(steps=20), device="cuda")
    rows = list(loop.train())

The same algorithm as `runs/lab` with verl: sample G responses to each of P prompts, pay a verdict that is the label,
compare with the other responses of the prompt, weigh the tokens, update. Weights are `pv_rl.losses.response_weights`
and verdicts `pv_rl.verdict.parse_verdict`, as in verl. `tests/support/reference.py` gives verl's own rollouts to
`update` and holds gradient norm and losses to verl's.

Letters: `R` runs, `B` rows of a run (P * G), `L` tokens of the longest response.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from pv_lab.evaluate import held_out
from pv_lab.loop_settings import Run, Settings
from pv_lab.objective import group_advantages, kl_terms, policy_terms
from pv_lab.optimizer import StackedAdamW
from pv_lab.paying import pay, training_sample
from pv_lab.samples import Sample
from pv_lab.stacked import StackedVerifier
from pv_lab.tokenizer import ASSISTANT, PAD, USER, VOCABULARY, encode
from pv_lab.trace_shares import trace_shares
from pv_rl.losses import response_weights

__all__ = ["Batch", "ReferenceLoop", "Run", "Settings"]

PAD_ID = VOCABULARY[PAD]
TOKENS_AT_ONCE = {"cpu": 2**14, "cuda": 2**18}
"""Of all runs together in one forward and backward pass."""

Traces = list[list[int]]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One step's rows."""

    prompts: Tensor
    """(R, B, T) ids, padded on the left."""
    responses: Tensor
    """(R, B, L) ids with the end mark, padded behind it."""
    scores: Tensor
    """(R, B) rewards."""
    groups: Sequence[int] = field(default=())
    """B numbers, equal for responses of the same prompt; P groups of G in a row if left out."""
    counts: Tensor | None = None
    """(R, B) bool, False for a row that abstains; all count if left out."""


class ReferenceLoop:
    """`R` runs in lockstep."""

    def __init__(
        self,
        runs: Sequence[Run],
        settings: Settings,
        *,
        device: str = "cpu",
        start: StackedVerifier | None = None,
    ) -> None:
        self.runs, self.settings, self.device = list(runs), settings, device
        self.policy = start or StackedVerifier.load_each([run.start for run in runs], device=device)
        self.reference = self.policy.copy()
        for weight in self.policy.weights.values():
            weight.requires_grad_(True)
        self.optimizer = StackedAdamW(list(self.policy.weights.values()), lr=self._rates(1))
        self.kl = torch.tensor([run.kl for run in runs], device=device)
        self.generator = torch.Generator(device=device).manual_seed(settings.sampling_seed)
        self.entropy = torch.zeros(len(runs), device=device)
        """(R,) nats, mean over the response tokens of the last update, before it."""
        self._held_out = held_out(settings.eval_proofs, settings.difficulty, settings.eval_seed)

    def train(self) -> Iterator[dict[str, Any]]:
        """Train, and yield a row for each run and step (and for each held-out measurement, `split="held_out"`)."""
        yield from self._measured(0)
        for step in range(1, self.settings.steps + 1):
            rows = [self._samples(run, step) for run in self.runs]
            prompts, responses, traces = self.rollout(rows)
            paid = [
                pay(run, step, of_run, samples, self.settings.max_tokens)
                for run, of_run, samples in zip(self.runs, traces, rows, strict=True)
            ]
            self.optimizer.lr = self._rates(step)
            measured = self.update(
                Batch(
                    prompts=prompts,
                    responses=responses,
                    scores=torch.tensor([one.scores for one in paid], device=self.device),
                    counts=torch.tensor([one.counts for one in paid], device=self.device),
                )
            )
            measured = {
                name: value.tolist() for name, value in (measured | {"entropy": self.entropy}).items()
            }
            for i, row in enumerate(map(trace_shares, traces, rows)):
                numbers = {name: value[i] for name, value in measured.items()}
                yield self._row(step, i, "train", row | paid[i].columns | numbers)
            if step % self.settings.eval_every == 0 or step == self.settings.steps:
                yield from self._measured(step)

    def rollout(self, rows: list[list[Sample]]) -> tuple[Tensor, Tensor, list[Traces]]:
        """Sample a response for each of the R times B samples: prompts, responses, and each trace as ids without
        padding."""
        prompts, mask = self._prompts(rows)
        responses = self.policy.sample(
            prompts, mask, max_tokens=self.settings.max_tokens, generator=self.generator
        )
        traces = [[[i for i in ids if i != PAD_ID] for ids in run] for run in responses.tolist()]
        return prompts, responses, traces

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """One step of every run on its batch. Returns numbers by verl's names, (R,) each, means over mini-batches.

        A run of whose rows none counts takes no step.
        """
        settings = self.settings
        runs, rows, _ = batch.responses.shape
        mask = batch.responses != PAD_ID
        counts = torch.ones_like(batch.scores, dtype=torch.bool) if batch.counts is None else batch.counts
        lengths = mask.sum(-1) * counts
        groups = batch.groups or [row // settings.responses for row in range(rows)]
        advantages = group_advantages(batch.scores, torch.tensor(groups, device=self.device), counts)
        weights = torch.stack(
            [
                response_weights(run.mode, of_run.cpu(), groups, of_rows.cpu())
                for run, of_run, of_rows in zip(self.runs, lengths, advantages, strict=True)
            ]
        ).to(self.device, torch.float32)
        parts = torch.arange(rows, device=self.device).chunk(settings.mini_batches)
        old = None
        if len(parts) > 1:
            with torch.no_grad():
                old = torch.cat(
                    [self._log_probs(self.policy, batch, part)[0] for part in self._cuts(batch)], dim=1
                )
        self.entropy = torch.zeros(runs, device=self.device)
        sums = {name: torch.zeros(runs, device=self.device) for name in ("pg_loss", "kl_loss", "grad_norm")}
        for part in parts:
            for rows_at_once in self._cuts(batch, part):
                loss, kl = self._losses(
                    batch,
                    rows_at_once,
                    mask[:, rows_at_once],
                    advantages[:, rows_at_once],
                    weights[:, rows_at_once] * len(parts),
                    None if old is None else old[:, rows_at_once],
                )
                (loss + self.kl * kl).sum().backward()
                sums["pg_loss"] += loss.detach() / len(parts)
                sums["kl_loss"] += kl.detach() / len(parts)
            sums["grad_norm"] += self.optimizer.step(counts.any(-1)) / len(parts)
        self.entropy /= mask.sum((-1, -2)).clamp(min=1)
        return sums

    def _losses(
        self,
        batch: Batch,
        rows: Tensor,
        mask: Tensor,
        advantages: Tensor,
        weights: Tensor,
        old: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Policy loss and KL term of some rows of every run, (R,) each, weighted and not divided by anything."""
        log_probs, entropies = self._log_probs(self.policy, batch, rows)
        with torch.no_grad():
            reference, _ = self._log_probs(self.reference, batch, rows)
            self.entropy += (entropies * mask).sum((-1, -2))
        old = log_probs.detach() if old is None else old
        settings = self.settings
        policy = policy_terms(
            log_probs, old, advantages, mask, clip=settings.clip, sequence_ratio=settings.sequence_ratio
        )

        def summed(matrix: Tensor) -> Tensor:
            return ((matrix * mask).sum(-1) * weights).sum(-1)

        return summed(policy), summed(kl_terms(log_probs, reference))

    def _log_probs(self, model: StackedVerifier, batch: Batch, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of each token of the responses, and the entropy in nats where it was drawn, (R, rows, L)
        each; no gradient goes through the entropy."""
        responses = batch.responses[:, rows]
        ids = torch.cat([batch.prompts[:, rows], responses], dim=-1)
        length = responses.shape[-1]
        logits = model.logits(ids[..., :-1], ids[..., :-1] != PAD_ID, last=length)
        log_probs = logits.log_softmax(-1)
        with torch.no_grad():
            entropies = -(log_probs.exp() * log_probs).sum(-1)
        return log_probs.gather(-1, responses[..., None])[..., 0], entropies

    def _cuts(self, batch: Batch, rows: Tensor | None = None) -> Iterator[Tensor]:
        if rows is None:
            rows = torch.arange(batch.responses.shape[1], device=self.device)
        tokens = batch.prompts.shape[-1] + batch.responses.shape[-1]
        room = TOKENS_AT_ONCE[torch.device(self.device).type]
        yield from rows.split(max(1, room // (len(self.runs) * tokens)))

    def _rates(self, step: int) -> Tensor:
        """(R,) learning rates at a step."""
        risen = (min(1.0, step / run.lr_warm_up) if run.lr_warm_up else 1.0 for run in self.runs)
        return torch.tensor(
            [run.lr * part for run, part in zip(self.runs, risen, strict=True)], device=self.device
        )

    def _samples(self, run: Run, step: int) -> list[Sample]:
        """B samples, each as often as it has responses."""
        first = (step - 1) * self.settings.prompts
        return [
            sample
            for index in range(first, first + self.settings.prompts)
            for sample in [training_sample(run, step, index, self.settings.difficulty)]
            * self.settings.responses
        ]

    def _prompts(self, rows: list[list[Sample]]) -> tuple[Tensor, Tensor]:
        ids = [[_encoded(sample.text) for sample in of_run] for of_run in rows]
        longest = max(len(row) for of_run in ids for row in of_run)
        padded = torch.tensor(
            [[[PAD_ID] * (longest - len(row)) + list(row) for row in of_run] for of_run in ids],
            device=self.device,
        )
        return padded, padded != PAD_ID

    def _measured(self, step: int) -> Iterator[dict[str, Any]]:
        rows = [self._held_out] * len(self.runs)
        traces: list[Traces] = [[] for _ in self.runs]
        at_once = self.settings.prompts * self.settings.responses
        for first in range(0, len(self._held_out), at_once):
            *_, sampled = self.rollout([of_run[first : first + at_once] for of_run in rows])
            traces = [have + new for have, new in zip(traces, sampled, strict=True)]
        for i, row in enumerate(map(trace_shares, traces, rows)):
            yield self._row(step, i, "held_out", row)

    def _row(self, step: int, run: int, split: str, measured: dict[str, float]) -> dict[str, Any]:
        return {"run": run, "step": step, "split": split, **asdict(self.runs[run]), **measured}


@lru_cache(maxsize=2**16)
def _encoded(text: str) -> tuple[int, ...]:
    return tuple(encode(f"{USER} {text} {ASSISTANT}"))
