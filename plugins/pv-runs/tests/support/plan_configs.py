"""A config with the keys that the plan reads: Qwen3-8B on the paper's 80 GPUs. `config(key=value)` changes some."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

QWEN3_8B = {
    "hidden_size": 4096,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
QWEN3_32B = {
    **QWEN3_8B,
    "hidden_size": 5120,
    "num_hidden_layers": 64,
    "num_attention_heads": 64,
    "intermediate_size": 25600,
}
QWEN25_14B = {
    **QWEN3_8B,
    "hidden_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "intermediate_size": 13824,
    "vocab_size": 152064,
}
TINY = {
    "hidden_size": 10,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 5,
    "intermediate_size": 100,
    "vocab_size": 1000,
}
"""A = 20, K = 10: a layer has 10 x (2 x 20 + 2 x 10 + 3 x 100 + 2) = 3,620 parameters, the vocabulary 2 x 10,000."""

JUDGE = {
    "endpoints": [{"url": "https://api.deepseek.com/v1", "model": "deepseek-chat", "api_key_env": "KEY"}],
    "prices": {"deepseek-chat": {"input": 0.56, "cached_input": 0.07, "output": 1.68}},
    "budget": {"usd_per_step": 5.0},
}


def config(changes: dict[str, Any] | None = None, *, remove: tuple[str, ...] = ()) -> DictConfig:
    """The config with `changes` by dotted key, and without the keys in `remove`."""
    actor = {
        "strategy": "fsdp",
        "ppo_mini_batch_size": 60,
        "ppo_epochs": 1,
        "use_kl_loss": True,
        "use_dynamic_bsz": True,
        "ppo_max_token_len_per_gpu": 12288,
        "ulysses_sequence_parallel_size": 2,
        "entropy_coeff": 0,
        "fsdp_config": {"fsdp_size": -1, "model_dtype": "fp32", "param_offload": False},
    }
    rollout = {
        "n": 8,
        "temperature": 0.6,
        "nnodes": "${cluster.rollout.nodes}",
        "n_gpus_per_node": 8,
        "tensor_model_parallel_size": 1,
        "gpu_memory_utilization": 0.8,
        "max_model_len": 24192,
        "log_prob_max_token_len_per_gpu": "${actor_rollout_ref.actor.ppo_max_token_len_per_gpu}",
        "checkpoint_engine": {"backend": "nccl"},
    }
    made = OmegaConf.create(
        {
            "cluster": {
                "nodes": 10,
                "gpus_per_node": 8,
                "train": {"nodes": 4},
                "rollout": {"nodes": 6},
                "gpu": {"name": "H100", "memory_gib": 80, "bf16_tflops": 989, "bandwidth_tb_s": 3.35},
            },
            "plan": {"model": dict(QWEN3_8B)},
            "data": {"train_batch_size": 60, "max_prompt_length": 8192, "max_response_length": 16000},
            "algorithm": {"adv_estimator": "grpo"},
            "actor_rollout_ref": {
                "model": {"path": "/nowhere/a-model", "use_remove_padding": True},
                "actor": actor,
                "rollout": rollout,
            },
            "trainer": {
                "nnodes": "${cluster.train.nodes}",
                "n_gpus_per_node": 8,
                "total_training_steps": 300,
                "v1": {"trainer_mode": "separate_async", "separate_async": {"num_warmup_batches": 1}},
                "default_local_dir": "${oc.env:A_VARIABLE_THAT_NOBODY_SETS}/checkpoints",
            },
            "reward": {"custom_reward_function": {"reward_kwargs": {"judge": dict(JUDGE)}}},
        }
    )
    for key, value in (changes or {}).items():
        OmegaConf.update(made, key, value, merge=False, force_add=True)
    for key in remove:
        parent, _, name = key.rpartition(".")
        del (OmegaConf.select(made, parent) if parent else made)[name]
    return made
