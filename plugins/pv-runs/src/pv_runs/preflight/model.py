"""Model folders and names: config, tokenizer and complete weights of each model that the run loads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pv_judge.files import load_json
from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import value
from pv_runs.preflight.findings import note, right, wrong
from pv_runs.preflight.machine import Machine

__all__ = ["check_model", "model_folder"]

POLICY = "actor_rollout_ref.model.path"
WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt")
TRUE = ("1", "ON", "YES", "TRUE")
"""What huggingface_hub reads as true."""


def check_model(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Whether each model is a complete folder, or a name of the Hugging Face Hub."""
    for key in _keys(config):
        name = str(value(config, key) or "")
        if not name:
            yield wrong(f"{key} is empty", f"set {key} to the folder of a model, or to a name of the Hub")
            continue
        if "://" in name:
            yield note(f"{key}={name} is left to verl")
            continue
        path = machine.cwd / Path(name).expanduser()
        if path.is_dir():
            faults = list(_folder(path, key, config))
            yield from faults or [right(f"{path} is complete")]
        elif value(config, "launch.prepare") is not None and key == POLICY and Path(name).is_absolute():
            yield right(f"{path}: launch.prepare writes it")
        else:
            yield _name(name, key, machine)


def model_folder(config: DictConfig, machine: Machine) -> Path | None:
    """The policy's folder, if it is on this machine."""
    path = machine.cwd / Path(str(value(config, POLICY) or "")).expanduser()
    return path if (path / "config.json").is_file() else None


def _keys(config: DictConfig) -> Iterator[str]:
    yield POLICY
    if value(config, "algorithm.adv_estimator") == "gae":
        yield "critic.model.path"
    if value(config, "reward.reward_model.enable"):
        yield "reward.reward_model.model_path"


def _folder(path: Path, key: str, config: DictConfig) -> Iterator[Finding]:
    again = "download the model again, for example with hf download"
    try:
        shape = load_json((path / "config.json").read_text(encoding="utf-8"))
        if not isinstance(shape, dict):
            raise TypeError("it is not a mapping")
    except FileNotFoundError:
        below = [one.parent.name for one in sorted(path.glob("*/config.json"))][:3]
        hint = f"; {', '.join(below)} below it has one" if below else ""
        yield wrong(f"{key}: {path} has no config.json{hint}", f"set {key} to the folder of a model")
        return
    except (OSError, ValueError, TypeError) as error:
        yield wrong(f"{key}: {path / 'config.json'} cannot be read ({error})", again)
        return
    tokenizer = Path(str(value(config, f"{key.rpartition('.')[0]}.tokenizer_path") or path)).expanduser()
    if tokenizer.is_dir() and not any((tokenizer / one).is_file() for one in TOKENIZER):
        yield wrong(f"{key}: {tokenizer} has no tokenizer", again)
    for text in _weights(path):
        yield wrong(f"{key}: {text}", again)
    longest, made_for = (
        value(config, "actor_rollout_ref.rollout.max_model_len"),
        shape.get("max_position_embeddings"),
    )
    rope = shape.get("rope_parameters")
    scaled = shape.get("rope_scaling") or (isinstance(rope, dict) and rope.get("factor"))
    if (
        key == POLICY
        and isinstance(longest, int)
        and isinstance(made_for, int)
        and longest > made_for
        and not scaled
    ):
        yield wrong(
            f"actor_rollout_ref.rollout.max_model_len is {longest:,}, and {path} is made for {made_for:,} tokens",
            "lower data.max_response_length and max_model_len, or choose another model",
        )


def _weights(path: Path) -> Iterator[str]:
    """Faults of the weights: none, a shard of the index that is missing, a file that was not written to its end."""
    wanted: set[str] = set()
    for index in path.glob("*.index.json"):
        try:
            wanted |= {
                str(one) for one in load_json(index.read_text(encoding="utf-8"))["weight_map"].values()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            yield f"{index} cannot be read ({type(error).__name__})"
    if missing := sorted(one for one in wanted if not (path / one).is_file()):
        yield f"{path} lacks {len(missing)} of {len(wanted)} files of its weights, {missing[0]} first"
    files = [one for pattern in WEIGHTS for one in path.glob(pattern)]
    if not files and not missing:
        yield f"{path} has no weights ({', '.join(WEIGHTS)})"
    for file in files:
        size = file.stat().st_size
        expected = _expected_size(file) if file.suffix == ".safetensors" else 1
        if expected is None or size < expected:
            yield f"{file} is incomplete or damaged: it has {size:,} bytes"


def _expected_size(file: Path) -> int | None:
    """Bytes of a safetensors file by its header: 8 bytes with the length of the header, the header, the tensors."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 0 < length < 100_000_000:
                return None
            header: Any = load_json(stream.read(length))
        ends = [one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"]
        return 8 + length + max(ends, default=0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def _name(name: str, key: str, machine: Machine) -> Finding:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    local = wrong(
        f"{key}: there is no folder {name}", f"set {key} to the folder of a model, or to a name of the Hub"
    )
    in_folder = "/" in name and (machine.cwd / name).parent.is_dir()
    if name.startswith(("/", ".", "~")) or name.count("/") > 1 or in_folder:
        return local
    try:
        validate_repo_id(name)
        cached = isinstance(try_to_load_from_cache(name, "config.json"), str)
    except HFValidationError:
        return local
    offline = [
        one for one in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if _is_on(machine.environment.get(one, ""))
    ]
    if cached:
        return right(f"{name} is in the cache of the Hugging Face Hub")
    if offline:
        return wrong(
            f"{key}: {name} is not in the cache of the Hugging Face Hub, and {offline[0]} forbids to download it",
            f"hf download {name}, or set {key} to a folder",
        )
    return note(
        f"{name} is not on this machine: verl downloads it from the Hugging Face Hub, if it exists there"
    )


def _is_on(text: str) -> bool:
    return text.strip().upper() in TRUE
