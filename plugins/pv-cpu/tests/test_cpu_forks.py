"""Ray's workers as forks: what a fork is given, when a new Python is started instead, and when Ray is told."""

import json
import sys
from pathlib import Path

import pytest
from fork_server import run_fresh

from pv_cpu.forks import server as fork_server

# A server in a fork of this process; the driver is the write end of a pipe. Not imported: pv_cpu, which imports verl.
SERVER = """
import json, os, select, socket, subprocess, sys, time
sys.path.insert(0, FORKS)
import server
CLIENT = FORKS + "/client.py"
server.LIBRARIES, server.MODULES = (), MODULES
listener = socket.socket(socket.AF_UNIX); listener.bind("\\0test-" + str(os.getpid())); listener.listen()
name, (life, driver) = listener.getsockname()[1:].decode(), os.pipe()
pid = os.fork()
if pid == 0:
    os.dup2(life, 0); os.close(driver); server.main(str(listener.fileno())); os._exit(7)
listener.close(); os.close(life)
def worker(*arguments, socket_name=name, **env):
    command = [sys.executable, "-I", "-S", CLIENT, socket_name, sys.executable, "SCRIPT", *arguments]
    out = subprocess.Popen(command, env={**os.environ, "RAY_JOB_ID": "1", **env}, cwd="/", stdout=subprocess.PIPE)
    return out.stdout.read().decode()
"""
SCRIPT = """
import json, os, random, sys
numbers = []
if "torch" in sys.modules:  # a fork; a new Python would import it for long
    import numpy, torch
    numbers = [random.random(), float(numpy.random.rand()), torch.rand(1).item()]
print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "env": os.environ.get("OF_THE_WORKER"), "name": __name__,
    "parent": os.getppid(), "group": os.getpgid(0) == os.getpid(), "path": sys.path[0], "numbers": numbers}))
sys.exit("to stderr")
"""


def run(code: str, tmp_path, program: str = SCRIPT, modules: tuple[str, ...] = ("json",)) -> list:
    """What the code prints, a JSON value a line; the server's process id first."""
    script = tmp_path / "worker.py"
    script.write_text(program)
    given = f"FORKS, MODULES = {str(Path(fork_server.__file__).parent)!r}, {modules}\n"
    done = run_fresh(given + SERVER.replace("SCRIPT", str(script)) + "print(pid)\n" + code)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# Prints the server's process id and a random id of Ray.
OF_RAY = "import json, os, ray; print(json.dumps([os.getppid(), ray.ObjectID.from_random().hex()]))"


linux = pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")


@linux
def test_a_fork_has_its_own_arguments_environment_folder_output_and_random_numbers(tmp_path):
    server, one, two = run(
        "print(worker('--a', 'b c', OF_THE_WORKER='1'), end='')\nprint(worker(OF_THE_WORKER='2'), end='')",
        tmp_path,
    )
    assert one["parent"] == two["parent"] == server
    assert (one["argv"], two["argv"]) == (["--a", "b c"], [])
    assert (one["env"], two["env"]) == ("1", "2")
    assert (one["cwd"], one["name"], one["path"]) == ("/", "__main__", str(tmp_path))
    assert one["group"]
    assert len(one["numbers"]) == 3
    assert not set(one["numbers"]) & set(two["numbers"])


@linux
def test_workers_draw_different_ids_of_ray_after_what_they_import_with_it(tmp_path):
    twice = "for _ in range(2): print(worker(VERL_PLATFORM='cpu'), end='')"
    server, one, two = run(twice, tmp_path, OF_RAY, modules=fork_server.MODULES)
    assert one[0] == two[0] == server
    assert one[1] != two[1]


def test_another_version_of_ray_may_keep_its_ids_elsewhere_or_draw_them_otherwise(monkeypatch):
    import ray.actor as actor

    with fork_server.no_ids_of_ray():
        assert actor.ActorClassID.nil().is_nil()
        assert not actor.ActorClassID.from_random().is_nil()
    monkeypatch.delattr(actor, "ActorClassID")
    with fork_server.no_ids_of_ray():
        pass


@linux
@pytest.mark.parametrize(
    "how",
    ["socket_name='nobody'", "RAY_JOB_ID='2'", "RAY_RAYLET_PID='3'", "LONG='x' * 2**20, RAY_JOB_ID='4'"],
)
def test_without_an_answer_the_client_starts_the_worker_itself(how, tmp_path):
    how = how.replace("2**20", "2**16")  # Linux allows a variable of 128 KiB
    server, one, other = run(f"print(worker(), end='')\nprint(worker('x', {how}), end='')", tmp_path)
    assert one["parent"] == server
    assert other["parent"] != server
    assert other["argv"] == ["x"]


@linux
def test_a_request_that_is_none_leaves_the_server_alive(tmp_path):
    code = """
for text in (b"", b"no json\\n", b"{", b"[1]\\n", b'{"argv": []}\\n'):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\\0" + name); one.sendall(text)
print(worker(), end="")
"""
    server, one = run(code, tmp_path)
    assert one["parent"] == server


@linux
def test_the_server_ends_with_the_driver(tmp_path):
    _, code = run("os.close(driver); print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))", tmp_path)
    assert code == 7


@pytest.mark.parametrize(
    ("ray_init", "env", "set_by_us"),
    [
        ("{}", {}, True),
        ("{'runtime_env': {'py_executable': None}}", {}, True),
        ("{'runtime_env': {'py_executable': 'mine'}}", {}, False),
        ("{'runtime_env': {'env_vars': {'A': '1'}}}", {}, False),
        ("{'address': '127.0.0.1:1'}", {}, False),
        ("{}", {"PYTHONHASHSEED": "0"}, False),
        ("{}", {"PV_CPU_FORK_WORKERS": "0"}, False),
    ],
)
def test_ray_gets_the_client_unless_the_run_asks_for_something_else(ray_init, env, set_by_us):
    code = f"""
from omegaconf import OmegaConf
from verl.trainer.constants_ppo import get_ppo_ray_runtime_env
from pv_cpu import forks
forks.subprocess.Popen = lambda *_, **__: type("Server", (), {{"poll": lambda self: None}})()
config = OmegaConf.create({{"ray_kwargs": {{"ray_init": {ray_init}}}}})
OmegaConf.set_struct(config, True)
get_ppo_ray_runtime_env(config)
print("forks/client.py" in str(config))
"""
    done = run_fresh(code, VERL_PLATFORM="cpu", **env)
    assert done.stdout.split()[-1:] == [str(set_by_us and sys.platform == "linux")], done.stderr
