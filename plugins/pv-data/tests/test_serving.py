"""Checkpoints: what is one, what tells them apart, how verl's are converted, and a server that leaves nothing behind.

The server of these tests is a small one that speaks the protocol; vLLM and transformers are started by hand, see
docs/guides/evaluation.md.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from fork_server import run_fresh

from pv_data.serving import checkpoint, served
from pv_data.serving.checkpoint import fingerprint, is_model, is_verl, model_folder
from pv_rl.errors import ConfigError, DataError, SetupError

SERVER = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, body):
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
    def do_GET(self):
        self.answer({})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = "Read.\\n### " + str("SOUND" in asked["messages"][0]["content"])
        self.answer({"choices": [{"message": {"content": text}, "finish_reason": "stop"}],
                     "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
print("serving", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


CHECKPOINTS = """
import os, torch
from pathlib import Path
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

class Hostile:
    def __reduce__(self):
        return os.system, ("touch ran",)

torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("fsdp",))
config = Qwen3Config(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                     num_key_value_heads=1, head_dim=8, architectures=["Qwen3ForCausalLM"])
own = {name: distribute_tensor(one.detach(), mesh, [Shard(0)])
       for name, one in Qwen3ForCausalLM(config).state_dict().items()}
for name, state in (("own", own), ("hostile", {"a": Hostile()})):
    actor = Path(name, "global_step_1", "actor")
    config.save_pretrained(actor / "huggingface")
    (actor / "fsdp_config.json").write_text('{"FSDP_version": 2, "world_size": 1}')
    torch.save(state, actor / "model_world_size_1_rank_0.pt")
"""


def own_server(server: str, folder: Path, name: str, port: int) -> list[str]:
    """In place of `served._command`."""
    return [sys.executable, "-c", SERVER, str(port)]


def model(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def verl_checkpoint(folder: Path) -> Path:
    actor = folder / "global_step_30" / "actor"
    (actor / "huggingface").mkdir(parents=True)
    (actor / "huggingface" / "config.json").write_text("{}")
    (actor / "model_world_size_2_rank_0.pt").write_bytes(b"0")
    (actor / "model_world_size_2_rank_1.pt").write_bytes(b"1")
    return folder / "global_step_30"


def test_a_models_folder_is_told_from_a_verl_checkpoint(tmp_path):
    step = verl_checkpoint(tmp_path)
    assert is_verl(step)
    assert is_verl(step / "actor")
    assert not is_model(step)
    assert is_model(model(tmp_path / "m"))
    assert not is_verl(tmp_path / "m")


def test_models_of_other_weights_have_other_fingerprints(tmp_path):
    size = 10 * checkpoint.BLOCK * checkpoint.BLOCKS
    one = bytearray(size)
    first = fingerprint(model(tmp_path / "a", bytes(one)))
    assert fingerprint(model(tmp_path / "b", bytes(one))) == first  # wherever it lies
    trained = bytes(byte ^ (n % 1000 == 0) for n, byte in enumerate(one[:1000])) * (size // 1000 + 1)
    assert fingerprint(model(tmp_path / "c", trained[:size])) != first
    assert fingerprint(model(tmp_path / "d", bytes(one) + b"\0")) != first
    (tmp_path / "b" / "config.json").write_text('{"a": 1}')
    assert fingerprint(tmp_path / "b") != first


def converting(monkeypatch) -> list[list[str]]:
    """verl's conversion, done by a copy; returns the checkpoints that were converted."""
    done = []

    def merge(actor: Path, made: Path, log: Path) -> None:
        done.append(actor)
        model(made, b"".join(path.read_bytes() for path in sorted(actor.glob("*.pt"))))

    monkeypatch.setattr(checkpoint, "_merge", merge)
    return done


def test_a_verl_checkpoint_is_converted_once_and_again_when_it_changes(tmp_path, monkeypatch):
    step = verl_checkpoint(tmp_path)
    done = converting(monkeypatch)
    first = model_folder(step, tmp_path / "log")
    assert first == step.resolve() / "actor_merged"
    assert (first / "model.safetensors").read_bytes() == b"01"
    assert model_folder(step / "actor", tmp_path / "log") == first
    assert len(done) == 1
    (step / "actor" / "model_world_size_2_rank_0.pt").write_bytes(b"9")
    os.utime(step / "actor" / "model_world_size_2_rank_0.pt", (1, 1))
    assert (model_folder(step, tmp_path / "log") / "model.safetensors").read_bytes() == b"91"
    assert len(done) == 2


def test_a_conversion_that_fails_leaves_nothing_half_made(tmp_path, monkeypatch):
    step = verl_checkpoint(tmp_path)

    def merge(actor: Path, made: Path, log: Path) -> None:
        made.mkdir()
        (made / "config.json").write_text("{}")
        raise SetupError("verl could not convert it")

    monkeypatch.setattr(checkpoint, "_merge", merge)
    with pytest.raises(SetupError, match="could not convert"):
        model_folder(step, tmp_path / "log")
    assert sorted(path.name for path in step.iterdir()) == ["actor"]


def test_whole_weights_in_a_checkpoint_are_used_as_they_are_and_lora_is_refused(tmp_path, monkeypatch):
    done = converting(monkeypatch)
    step = verl_checkpoint(tmp_path)
    (step / "actor" / "lora_train_meta.json").write_text("{}")
    with pytest.raises(DataError, match="LoRA"):
        model_folder(step, tmp_path / "log")
    model(step / "actor" / "huggingface")
    assert model_folder(step, tmp_path / "log") == (step / "actor" / "huggingface").resolve()
    assert done == []


@pytest.mark.paths  # starts verl's own conversion twice
def test_a_hostile_checkpoint_runs_no_code_and_verls_own_is_converted(tmp_path):
    done = run_fresh(CHECKPOINTS, cwd=tmp_path, PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr[-2000:]
    assert is_model(model_folder(tmp_path / "own" / "global_step_1", tmp_path / "own.log"))
    with pytest.raises(SetupError, match="verl could not convert"):
        model_folder(tmp_path / "hostile" / "global_step_1", tmp_path / "hostile.log")
    assert "posix.system" in (tmp_path / "hostile.log").read_text()
    assert not (tmp_path / "ran").exists()


def test_verl_converts_a_checkpoint_without_running_its_pickles(tmp_path, monkeypatch):
    started = []

    @contextmanager
    def process_tree(command, *, env, **_):
        started.append((command[2], env["TORCH_FORCE_WEIGHTS_ONLY_LOAD"]))
        yield subprocess.Popen(["false"])

    monkeypatch.setattr(checkpoint, "process_tree", process_tree)
    with pytest.raises(SetupError, match="could not convert"):
        model_folder(verl_checkpoint(tmp_path), tmp_path / "log")
    assert started == [("verl.model_merger", "1")]


def test_a_server_answers_while_it_is_needed_and_is_gone_after(tmp_path, monkeypatch):
    monkeypatch.setattr(served, "_command", own_server)
    folder = model(tmp_path / "m")
    with served.served(folder, server="vllm", log=tmp_path / "logs" / "server.log") as one:
        assert (one.model, one.at_once) == ("m", 256)
        assert httpx.get(one.url, trust_env=False).status_code == 200
    with pytest.raises(httpx.TransportError):
        httpx.get(one.url, trust_env=False)
    assert (tmp_path / "logs" / "server.log").read_text().startswith("serving")


def test_the_server_is_chosen_by_what_there_is(tmp_path, monkeypatch):
    there = {"vllm": True, "gpu": True}
    monkeypatch.setattr(served, "_has", lambda package: there.get(package, package != "openai"))
    monkeypatch.setattr(served, "visible_gpus", lambda: ["0"] if there["gpu"] else [])
    assert served.choose_server() == "vllm"
    there["gpu"] = False
    assert served.choose_server() == "transformers"
    there |= {"vllm": False, "gpu": True}
    assert served.choose_server() == "transformers"
    with pytest.raises(ConfigError, match="auto, vllm, transformers"):
        served.choose_server("sglang")
    # what it needs is looked at when it is started: where all is known, nothing is needed
    for server, said in (("vllm", "pip install vllm"), ("transformers", "lacks openai")):
        with (
            pytest.raises(SetupError, match=said),
            served.served(model(tmp_path / "m"), server=server, log=tmp_path / "log"),
        ):
            pass


def test_transformers_is_told_to_sample_and_where_a_text_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(served, "_command", own_server)
    folder = model(tmp_path / "m")
    (folder / "config.json").write_text('{"eos_token_id": 1, "pad_token_id": 3}')
    (folder / "generation_config.json").write_text(
        '{"eos_token_id": [1, 2], "top_k": 20, "do_sample": false}'
    )
    with served.served(folder, server="transformers", log=tmp_path / "log") as one:
        assert one.at_once == 1
        config = json.loads(one.fields["generation_config"])
    assert config == {"do_sample": True, "top_k": 0, "eos_token_id": [1, 2], "pad_token_id": 3}


def test_a_server_that_does_not_come_up_is_said_with_the_end_of_its_log(tmp_path, monkeypatch):
    folder = model(tmp_path / "m")
    code = "import sys; sys.stderr.write('\\x1b[31mCUDA out of memory'); sys.exit(3)"
    monkeypatch.setattr(served, "_command", lambda *_: [sys.executable, "-c", code])
    with (
        pytest.raises(SetupError, match=r"ended by itself, with 3; .*\n\?\[31mCUDA out of memory"),
        served.served(folder, server="vllm", log=tmp_path / "log"),
    ):
        pass
    monkeypatch.setattr(served, "_command", lambda *_: [sys.executable, "-c", "import time; time.sleep(60)"])
    with (
        pytest.raises(SetupError, match="did not come up within 1 s"),
        served.served(folder, server="vllm", log=tmp_path / "log", start_s=1),
    ):
        pass


CHILD = """
import sys, time
from pathlib import Path
from pv_data.serving import served
served._command = lambda server, folder, name, port: [sys.executable, "-c", {server!r}, str(port)]
with served.served(Path({folder!r}), server="vllm", log=Path({log!r})):
    print("up", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_server_goes_with_the_command_however_it_ends(tmp_path, how):
    code = CHILD.format(server=SERVER, folder=str(model(tmp_path / "m")), log=str(tmp_path / "log"))
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # CI may run us with it ignored
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    (server,) = psutil.Process(child.pid).children()
    child.send_signal(how)
    child.wait(timeout=30)
    _, alive = psutil.wait_procs([server], timeout=15)
    assert not alive
