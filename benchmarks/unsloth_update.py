"""What weight does a row have in an update of Unsloth's GRPO trainer, with `WeightedAdvantages` and without?

    python benchmarks/unsloth_update.py [MODE ...]        on a machine with a GPU, unsloth and pv-trainers

Each mode trains one generation batch of a small Qwen3 in a process of its own, with learning rate 0. The gradients that
the optimizer gets are compared with a float64 oracle of the same weights in plain transformers: the relative error, and
the weight that each row had, by least squares over the rows' own gradients, over the one that the mode gives. `own` is
Unsloth's `loss_type="dapo"` alone, which is `dapo@batch`: what it misses is not ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

GROUP, LONGEST, VOCABULARY, END = 4, 40, 512, 1
SETTINGS = {  # mode: gradient accumulation, steps_per_generation, importance sampling level
    "own": (1, 2, "token"),
    "balanced:0.6": (2, 2, "token"),
    "ba": (1, 2, "token"),
    "grpo": (2, 4, "sequence"),
    "dr_grpo:64": (1, 1, "token"),
}


def score(ids: list[int]) -> float:
    """A reward that differs within a group; `ids` end with the end-of-text mark, if there is one."""
    return float(sum(ids) * 7919 % 5)


def save_model(folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    words = {"<pad>": 0, "<eos>": END, "<unk>": 2} | {f"w{i}": i for i in range(3, VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, padding_side="left", **special).save_pretrained(
        folder
    )
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=512,
        initializer_range=0.08,
        tie_word_embeddings=False,
        eos_token_id=END,
        pad_token_id=0,
    )
    model = Qwen3ForCausalLM(config)
    model.lm_head.weight.data[END] += 0.3  # so that some responses end
    model.save_pretrained(folder)


def train(folder: Path, mode: str) -> None:
    from unsloth import FastLanguageModel  # isort: skip  # before TRL, which it changes

    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from pv_trainers.trl import WeightedAdvantages

    accumulation, per_generation, level = SETTINGS[mode]
    model, tokenizer = FastLanguageModel.from_pretrained(
        str(folder), max_seq_length=256, load_in_4bit=False, full_finetuning=True, dtype=torch.float32
    )
    batches, updates = [], []

    class Kept:
        def _generate_and_score_completions(self, inputs):
            batches.append(super()._generate_and_score_completions(inputs))
            return batches[-1]

    class Gradients(TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, model=None, **others):
            updates.append({name: each.grad.float().cpu() for name, each in model.named_parameters()})

    bases = (Kept, GRPOTrainer) if mode == "own" else (Kept, WeightedAdvantages, GRPOTrainer)
    trainer = type("Trainer", bases, {})(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": [f"w{i} w{i + 1}" for i in range(3, 67)]}),
        reward_funcs=lambda completion_ids, **_: [score(ids) for ids in completion_ids],
        args=GRPOConfig(
            output_dir=str(folder / "out"),
            per_device_train_batch_size=GROUP,
            num_generations=GROUP,
            max_completion_length=LONGEST,
            gradient_accumulation_steps=accumulation,
            steps_per_generation=per_generation,
            max_steps=per_generation // accumulation,
            loss_type="dapo",
            importance_sampling_level=level,
            scale_rewards=False,
            beta=0.0,
            learning_rate=0.0,
            max_grad_norm=1e9,
            bf16=False,
            use_cpu=not torch.cuda.is_available(),
            report_to=[],
            save_strategy="no",
        ),
        callbacks=[Gradients()],
        **({} if mode == "own" else {"loss_agg_mode": mode}),
    )
    trainer.train()
    batch = {name: value.cpu() for name, value in batches[0].items() if torch.is_tensor(value)}
    torch.save((batch, updates), folder / f"{mode}.pt")


def compare(folder: Path, mode: str) -> dict[str, object]:
    """Error and weights of the rows, without Unsloth."""
    import torch
    from transformers import AutoModelForCausalLM

    from pv_rl.losses import response_weights

    batch, updates = torch.load(folder / f"{mode}.pt")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager")
    scores, rows = [], []
    lengths = batch["completion_mask"].sum(dim=1).tolist()  # 0 where Unsloth masks what was cut off
    for prompt, given, response, counts in zip(
        *(batch[f"{part}_{name}"] for part in ("prompt", "completion") for name in ("ids", "mask")),
        strict=True,
    ):
        ends = (response == END).nonzero()
        scores.append(score(response[: ends[0] + 1 if len(ends) else None].tolist()))
        prompt, response = prompt[given.bool()], response[counts.bool()]
        logits = model(input_ids=torch.cat([prompt, response])[None]).logits[0, len(prompt) - 1 : -1]
        log_probs = torch.log_softmax(logits, -1).gather(1, response[:, None])
        model.zero_grad()
        (-log_probs.sum()).backward()
        rows.append(torch.cat([each.grad.flatten() for each in model.parameters()]))
    groups = [row // GROUP for row in range(len(rows))]
    grouped = torch.tensor(scores, dtype=torch.float64).view(-1, GROUP)
    advantages = (grouped - grouped.mean(dim=1, keepdim=True)).flatten()
    names = [name for name, _ in model.named_parameters()]
    found = sum(torch.cat([one[name].double().flatten() for name in names]) for one in updates)
    weights = response_weights("dapo@batch" if mode == "own" else mode, lengths, groups, advantages) * len(
        updates
    )
    live = [row for row, length in enumerate(lengths) if length and advantages[row]]
    shares = torch.stack(rows)[live] * advantages[live, None]
    used = torch.linalg.pinv(shares @ shares.T, hermitian=True, rtol=1e-9) @ shares @ found
    expected = weights[live] @ shares
    return {
        "mode": mode,
        "updates": len(updates),
        "lengths": [lengths[row] for row in live],
        "error": float((found - expected).norm() / expected.norm()),
        "weights_over_expected": [round(float(one), 4) for one in used / weights[live]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modes", nargs="*", default=list(SETTINGS), help="of " + ", ".join(SETTINGS))
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)  # of a child process
    arguments = parser.parse_args()
    if arguments.folder:
        train(arguments.folder, arguments.modes[0])
        return
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder))
        for mode in arguments.modes:
            subprocess.run([sys.executable, __file__, mode, "--folder", folder], check=True)
            print(json.dumps(compare(Path(folder), mode)), flush=True)


if __name__ == "__main__":
    main()
