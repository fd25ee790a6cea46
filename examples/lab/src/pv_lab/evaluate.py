"""Measure a verifier on held-out proofs of both classes: `python -m pv_lab.evaluate [MODEL]`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pv_lab import MODEL_DIR
from pv_lab.samples import Sample, make_sample
from pv_lab.tokenizer import make_tokenizer
from pv_rl.verdict import parse_verdict

if TYPE_CHECKING:
    from transformers import Qwen3ForCausalLM

__all__ = ["SHORT", "Evaluation", "evaluate", "generate_traces", "held_out"]

SHORT = 8
"""A trace of at most this many tokens, its end included, has looked at no step."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Rates from 0 to 1 over sampled traces; a trace without a verdict counts as wrong."""

    right_proofs: float
    """Share of right proofs that were accepted."""
    wrong_proofs: float
    """Share of wrong proofs that were rejected."""
    balanced: float
    """Mean of the two; 0.5 is what accepting everything gives."""
    parsable: float
    """Share of traces that end in a verdict."""
    short: float
    """Share of traces of at most `SHORT` tokens."""
    mean_length: float
    """Mean tokens of a trace, its end included."""
    mean_long_length: float
    """The same over traces that are not short."""
    traces: int
    """How many traces were sampled."""


def held_out(count: int, difficulty: int, seed: int = 1_000_003) -> list[Sample]:
    """`count` samples of the test split, half of them right; the default seed is no data set's."""
    return [
        make_sample(seed=seed, split="test", index=i, difficulty=difficulty, p_true=0.5) for i in range(count)
    ]


def generate_traces(
    model: "Qwen3ForCausalLM",
    samples: list[Sample],
    *,
    seed: int,
    max_tokens: int = 160,
    greedy: bool = False,
) -> list[list[int]]:
    """One trace a sample at temperature 1 (or greedy), as ids with the end mark and without padding."""
    import torch

    tokenizer = make_tokenizer()
    chats = [[{"role": "user", "content": sample.text}] for sample in samples]
    batch = tokenizer.apply_chat_template(
        chats, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
    ).to(model.device)
    torch.manual_seed(seed)
    with torch.no_grad():
        # pyright does not see the mixin that brings `generate`
        out = model.generate(  # pyright: ignore[reportAttributeAccessIssue]
            **batch, max_new_tokens=max_tokens, do_sample=not greedy
        )
    new = out[:, batch["input_ids"].shape[1] :].tolist()
    return [[i for i in ids if i != tokenizer.pad_token_id] for ids in new]


def evaluate(
    model: "Qwen3ForCausalLM",
    samples: list[Sample],
    *,
    seed: int = 0,
    batch: int = 1024,
    max_tokens: int = 160,
    greedy: bool = False,
) -> Evaluation:
    """Sample one trace for each sample and score its verdict against the label."""
    tokenizer = make_tokenizer()
    traces = [
        ids
        for i in range(0, len(samples), batch)
        for ids in generate_traces(
            model, samples[i : i + batch], seed=seed + i, max_tokens=max_tokens, greedy=greedy
        )
    ]
    verdicts = [parse_verdict(tokenizer.decode(ids, skip_special_tokens=True)) for ids in traces]
    hits = {
        label: [verdict == label for verdict, s in zip(verdicts, samples, strict=True) if s.label == label]
        for label in (True, False)
    }
    right, wrong = (sum(hits[label]) / len(hits[label]) for label in (True, False))
    lengths = [len(ids) for ids in traces]
    longs = [n for n in lengths if n > SHORT]
    return Evaluation(
        right_proofs=right,
        wrong_proofs=wrong,
        balanced=(right + wrong) / 2,
        parsable=sum(verdict is not None for verdict in verdicts) / len(verdicts),
        short=1 - len(longs) / len(lengths),
        mean_length=sum(lengths) / len(lengths),
        mean_long_length=sum(longs) / max(1, len(longs)),
        traces=len(traces),
    )


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a saved verifier.")] = MODEL_DIR,
    count: Annotated[int, typer.Option(help="Number of held-out proofs.")] = 512,
    difficulty: Annotated[int, typer.Option(help="1 to 5.")] = 2,
    greedy: Annotated[bool, typer.Option(help="Take the likeliest token instead of sampling.")] = False,
) -> None:
    """Print accuracy on right and on wrong proofs, format and lengths."""
    import torch
    from transformers import Qwen3ForCausalLM

    verifier = Qwen3ForCausalLM.from_pretrained(model, dtype=torch.float32)
    for name, value in asdict(evaluate(verifier, held_out(count, difficulty), greedy=greedy)).items():
        typer.echo(f"{name:18} {value:.4g}")


if __name__ == "__main__":
    typer.run(main)
