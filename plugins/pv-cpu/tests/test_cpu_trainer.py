"""The real trainer, as a user starts it: two steps of GRPO with a random model."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)
REWARD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return sum(c.isdigit() for c in solution_str) / max(1, len(solution_str))
"""


def make_model(directory: Path) -> None:
    """A byte-level tokenizer and a Qwen3 of the same vocabulary."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = special + sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=TEMPLATE,
    )
    fast.save_pretrained(directory)
    config = Qwen3Config(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    torch.manual_seed(0)
    Qwen3ForCausalLM(config).save_pretrained(directory)


def make_data(file: Path) -> None:
    rows = [
        {
            "data_source": "digits",
            "prompt": [{"role": "user", "content": f"{i} + {i} ="}],
            "reward_model": {"style": "rule", "ground_truth": str(2 * i)},
            "extra_info": {"index": i},
        }
        for i in range(8)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))


def ray_processes_with(marker: str) -> list[str]:
    """Command lines of the processes whose environment holds the marker: the run and all it started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("PV_CPU_TEST_RUN") == marker:
                found.append(" ".join(process.cmdline())[:200])
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.slow
@pytest.mark.paths  # test_quickstart.py runs this platform in make test; here without pv-rl and with another tokenizer
def test_the_trainer_runs_two_steps_and_leaves_no_process_behind(tmp_path):
    make_model(tmp_path / "model")
    make_data(tmp_path / "data.jsonl")
    (tmp_path / "reward.py").write_text(REWARD)
    overrides = [
        "hydra.searchpath=[pkg://pv_cpu.hydra_configs]",
        "+cluster=cpu",
        "algorithm.adv_estimator=grpo",
        f"data.train_files={tmp_path}/data.jsonl",
        f"data.val_files={tmp_path}/data.jsonl",
        "data.train_batch_size=4",
        "data.max_prompt_length=32",
        "data.max_response_length=16",
        f"actor_rollout_ref.model.path={tmp_path}/model",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        "actor_rollout_ref.actor.use_kl_loss=true",  # builds the reference model: pinned memory
        "actor_rollout_ref.rollout.n=2",
        f"reward.custom_reward_function.path={tmp_path}/reward.py",
        "trainer.logger=[console]",
        "trainer.total_training_steps=2",
        "trainer.val_before_train=false",
        "trainer.save_freq=2",
        "trainer.resume_mode=disable",
        f"trainer.default_local_dir={tmp_path}/checkpoints",
        f"hydra.run.dir={tmp_path}/hydra",
    ]
    drop = ("VERL_", "PV_CPU_", "OMP_", "RAY_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    marker = tmp_path.as_posix()
    done = subprocess.run(
        [sys.executable, "-m", "verl.trainer.main_ppo", *overrides],
        cwd=tmp_path,
        env={**environment, "VERL_PLATFORM": "cpu", "HF_HUB_OFFLINE": "1", "PV_CPU_TEST_RUN": marker},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    steps = re.findall(r"step:(\d+) - .*rollout_probs_diff_max:([\d.e+-]+)", done.stdout)
    assert [step for step, _ in steps] == ["1", "2"]
    # Trainer and rollout agree, before and after the first update: the weights did arrive.
    assert all(float(difference) < 1e-5 for _, difference in steps)
    assert (tmp_path / "checkpoints/global_step_2/actor").is_dir()
    deadline = time.monotonic() + 30  # Ray ends its workers after the driver, later on a busy machine
    while ray_processes_with(marker) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert ray_processes_with(marker) == []
