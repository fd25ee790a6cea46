"""Runner of a page's blocks, in order, in a folder of its own and an environment with our packages from wheels."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import yaml
from doc_env import install_all, link_packages, new_venv, wheel_of
from doc_pages import Block, read_blocks, statements
from places import ROOT
from wheels import built_wheels

__all__ = ["Machine", "PageRun", "Result", "adapted"]

SUPPORT = Path(__file__).parent

ELSEWHERE = {  # a command, and what it needs that is not here; the other commands of its block are run
    r"--device cuda|^vllm |^torchrun |experiments\.sh": "a GPU",
    r"^ssh ": "another machine",
    r"^ray (start|job) |sbatch ": "a cluster",
    r"^lm_eval |inspect eval ": "another harness",
    r"^uv run |-m pv_trainers\.": "another trainer",
    r"^make |\bpytest ": "the clone's own environment",
    r"^pv-data sources --get ": "the network",
    r"^pv-rl lab run": "an hour",
}
TRAIN = re.compile(r"^((?:\w+=\S+ )*pv-rl train)(?: --check)?( .*)$", re.DOTALL)
MAIN_PPO = re.compile(r"^((?:\w+=\S+ )*python3? -m verl\.trainer\.main_ppo)( .*)$", re.DOTALL)
CHECKED = """{{ {0} --check{1}
}} > checks.txt 2>&1 || true
cat checks.txt; grep -q "^ok *settings" checks.txt"""
"""`pv-rl train` without its start, which needs GPUs: a machine without them has other checks that fail."""
SEARCH_PATH = "hydra.searchpath=[pkg://pv_rl.hydra_configs]"
PRELUDE = """
set -e -o pipefail
trap 'code=$?; env -0 > "$DOC_STATE/env"; pwd > "$DOC_STATE/folder"; exit $code' EXIT
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
python3() {
  if [ "$1 $2" = "-m venv" ]; then "$DOC_PYTHON" "$DOC_SUPPORT/doc_env.py" "$3"; else command python3 "$@"; fi
}
"""


def adapted(command: str) -> tuple[str, str]:
    """What is run for a command, and a reason if that is less than the command."""
    for pattern, reason in ELSEWHERE.items():
        if re.search(pattern, command):
            return "", f"needs {reason}"
    if "--resume" not in command and (found := TRAIN.match(command)):
        return CHECKED.format(
            found[1], found[2].replace(" ... ", " data_dir=DIR ")
        ), "settings checked, not trained"
    if found := MAIN_PPO.match(command):
        return (
            f"{found[1]} --cfg job{found[2].replace(' ... ', ' ')} > /dev/null",
            "config composed, not trained",
        )
    return command, ""


Result = tuple[str, list[str]]
"""What became of a block: `run`, `not run`, or `shown` if there is nothing in it to run; and why not all of it ran."""


class Machine:
    """What the pages share: wheels, a copy of the clone, packages of others, a venv with all of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wheels, self.clone = folder, built_wheels(folder / "wheels"), folder / "clone"
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, listed.decode().split("\0")):
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.clone / name)
        ours = {wheel.name.partition("-")[0] for wheel in self.wheels.glob("*.whl")}
        link_packages(
            folder / "others" / "site-packages", ours, list(ROOT.glob(".venv/beside/trl-*"))
        )  # `make test` installs it there
        self.environment = {
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "COLUMNS": "130",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_NO_BUILD_ISOLATION": "0",  # for pip this means: no isolation, so that nothing is fetched
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "DOC_PACKAGES": str(folder / "others" / "site-packages"),
            "DOC_PYTHON": sys.executable,
            "DOC_SUPPORT": str(SUPPORT),
        }
        os.environ["DOC_PACKAGES"] = self.environment["DOC_PACKAGES"]
        python = new_venv(folder / "venv")
        install_all(python, self.wheels)
        command = [python, "-c", "import pv_rl, pv_lab; print(pv_rl.__file__, pv_lab.__file__)"]
        found = subprocess.run(
            command, cwd=folder, env=self.environment, capture_output=True, text=True, check=True
        )
        assert found.stdout.count(f"{folder}/venv/lib/") == 2, (
            f"not the packages of the wheels: {found.stdout}"
        )


class PageRun:
    """A page that is being run. Close it to stop its servers."""

    def __init__(self, page: str, machine: Machine, folder: Path) -> None:
        self.page, self.machine, self.state = page, machine, folder / "state"
        self.blocks = read_blocks(ROOT / page)
        self.folder = folder / "work"
        self.replaced: dict[str, str] = {}
        """What a setup puts in the place of a text of the page, such as the URL of a server."""
        self.before: dict[str, Callable[[], None]] = {}
        """What a setup does before the command that begins so, such as filling in a sheet."""
        self.doctests, self.printed, self.groups, self.stack = "", "", [], ExitStack()
        for one in (self.state, self.folder, folder / "home", self.folder / "path" / "to"):
            one.mkdir(parents=True)
        for entry in machine.clone.iterdir():
            (self.folder / entry.name).symlink_to(entry)
        for name in ("pv-rl", "this/clone"):
            (self.folder / "path" / "to" / name).parent.mkdir(exist_ok=True)
            (self.folder / "path" / "to" / name).symlink_to(machine.clone)
        python = machine.folder / "venv" / "bin" / "python"
        if installed := [word for one in self.commands for word in one.split() if "pip install" in one]:
            python = new_venv(folder / "venv")
            if not any(
                wheel_of(str(self.folder / word), machine.wheels).endswith(".whl") for word in installed
            ):
                install_all(python, machine.wheels)
        self.environment = {
            **machine.environment,
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "DOC_STATE": str(self.state),
        }

    @property
    def commands(self) -> list[str]:
        return [command for block in self.blocks for command in block.commands]

    def __enter__(self) -> PageRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()
        for group in self.groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def run(self, block: Block) -> Result:
        """Run a block; AssertionError with the output if a command fails or prints something else than is shown."""
        import doc_setups

        for name in block.marks.get("setup", "").split():
            getattr(doc_setups, name)(self)
        text, (before, commands) = self.replace(block.text), block.parts
        for mode in ("file", "append"):
            if name := block.marks.get(mode):
                self.save(name, self.replace(before) if block.kind == "shell" else text, mode)
                if block.kind != "shell":
                    return "run", []
        if "output" in block.marks:
            self.compare(text.splitlines(), block)
            return "run", []
        if reason := block.marks.get("not run"):
            return "not run", [reason]
        if block.kind == "shell":
            then = [(block.marks["then"], [])] if "then" in block.marks else []
            ran = [adapted(self.replace(one)) for code, _ in commands + then for one in statements(code)]
            self.script([command for command, _ in ran if command], block)
            for _, printed in commands:
                self.compare(printed, block)
            reasons = list(dict.fromkeys(reason for _, reason in ran if reason))
            return "run" if any(command for command, _ in ran) else "not run", reasons
        if block.kind == "overrides":
            path = "" if "hydra.searchpath" in text else SEARCH_PATH
            given = text.replace("\\\n", " ").replace("\n", " ")
            self.shell(f"python -m verl.trainer.main_ppo --cfg job {path} {given} > /dev/null", block.place)
            return "run", ["config composed, not trained"]
        if block.kind in ("python", "doctest"):
            self.program(text, block)
        elif block.kind == "yaml":
            assert isinstance(yaml.safe_load(text), dict), f"{block.place}: no mapping"
        return "shown" if block.kind == "text" else "run", []

    def save(self, name: str, text: str, mode: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():  # to the clone, which other pages read as well
            path.unlink()
        with path.open("a" if mode == "append" else "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def script(self, commands: list[str], block: Block) -> None:
        """Run commands in one shell, or in several where a setup does something in between."""
        printed, waiting = "", []
        for command in commands:
            if begun := next((start for start in self.before if command.startswith(start)), None):
                self.shell("\n".join(waiting), block.place)
                printed, waiting = printed + self.printed, []
                self.before.pop(begun)()
            waiting.append(command)
        if waiting:
            self.shell("\n".join(waiting), block.place)
            self.printed = printed + self.printed

    def program(self, text: str, block: Block) -> None:
        if block.kind == "doctest":
            self.doctests = text = f"{self.doctests}\n{text}\n"
            command = f"python -m doctest {self.state}/block.txt"
        else:
            command = f"PYTHONPATH=. python {self.state}/doc_examples.py {self.state}/block.txt"
        (self.state / "block.txt").write_text(text, encoding="utf-8")
        shutil.copy(SUPPORT / "doc_examples.py", self.state)
        self.shell(command, block.place)

    def replace(self, text: str) -> str:
        for old, new in self.replaced.items():
            text = text.replace(old, new)
        return text

    def shell(self, script: str, where: str) -> None:
        """Run a script in bash; the next one begins in its folder, with the variables that it exports."""
        out, begun = self.state / "out", time.monotonic()
        with out.open("w+b") as file:
            process = subprocess.Popen(
                ["bash", "-c", PRELUDE + script],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.groups.append(process.pid)
            try:
                code = process.wait(timeout=900)
            except subprocess.TimeoutExpired:
                code = f"none after {time.monotonic() - begun:.0f} s"
        self.printed = out.read_text(encoding="utf-8", errors="replace")
        assert code == 0, f"{where}: exit code {code}\n{script}\n{self.printed[-3000:]}"
        entries = (self.state / "env").read_text(encoding="utf-8").rstrip("\0").split("\0")
        self.environment = dict(one.split("=", 1) for one in entries if not one.startswith("BASH_FUNC"))
        self.folder = Path((self.state / "folder").read_text(encoding="utf-8").strip())

    def compare(self, shown: list[str], block: Block) -> None:
        """Every line that is shown was printed, in this order, whatever the spaces and the breaks of lines."""
        printed, at = " ".join(self.printed.split()), 0
        for line in filter(None, (" ".join(line.split()) for line in shown)):
            found = printed.find(line, at)
            assert found >= 0, f"{block.place}: not printed: {line}\n{self.printed[-3000:]}"
            at = found + len(line)
