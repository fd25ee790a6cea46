"""What a page takes as given: files, runs, servers. A mark `<!-- setup: NAME -->` names a function of this module."""

from __future__ import annotations

import csv
import json
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from doc_runner import PageRun
from judge_server import Fault, JudgeServer, Script

JUDGES = json.dumps({**{f"condition{n}_satisfied": True for n in range(1, 5)}, "proof_correct": True})
PROBLEM = "Prove that the sum of two odd numbers is even."


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def serve(page: PageRun, *faults: Fault, at: Iterable[str] = ("localhost:8000", "127.0.0.1:8000")) -> None:
    """A server that speaks the protocol of OpenAI, in the place of the page's."""
    server = page.stack.enter_context(JudgeServer(Script(faults=faults)))
    for place in at:
        page.replaced[place] = server.url.removeprefix("http://").removesuffix("/v1")


def judge(page: PageRun) -> None:
    """A fluency judge, which finds every trace fluent."""
    serve(page)


def panel(page: PageRun) -> None:
    """A judge of proofs, which finds every proof right."""
    serve(page, Fault(kind="content", text=JUDGES), at=("localhost:8000", "127.0.0.1:8000", "127.0.0.1:8001"))


def verifier(page: PageRun) -> None:
    """A verifier, which accepts every proof, or gives 5 points; it also answers for a checkpoint."""
    serve(
        page,
        Fault(kind="content", contains="### Grade:", text="Step 2 has a gap.\n### Grade: 5"),
        Fault(kind="content", text="Every step holds.\n### True"),
    )
    place = page.replaced["localhost:8000"]
    page.replaced["CHECKPOINT_OR_URL"] = f"http://{place}/v1 --model m"
    page.replaced["--verifier checkpoints/global_step_300"] = f"--verifier http://{place}/v1 --model TRAINED"


def opc(page: PageRun) -> None:
    """Some pairs in the form of the Open Proof Corpus."""
    ask = "Judge it.\n\n### Problem Statement:\n\n{}\n\n### Model Solution:\n\nAttempt {}: write them as 2a+1, 2b+1.\n"
    rows = [
        {
            "metadata": {"category": ["Algebra"], "competition": "c", "source": "c", "year": 2020},
            "problem_id": f"q{n // 2}",
            "solutions": [
                {"author": "Human", "images": {}, "issue": None, "solution": "Write them as 2a+1 and 2b+1."}
            ],
            "grading_scheme": [{"description": "d", "part_id": 1, "points": 1, "title": "t"}],
            "model_id": "provider/model",
            "llm_judgment": None,
            "prompt": [{"role": "user", "content": ask.format(f"{PROBLEM} ({n // 2})", n)}],
            "reward_model": {"ground_truth": "correct" if n % 2 else "incorrect", "style": "rule"},
            "extra_info": {"index": n, "split": "test"},
        }
        for n in range(8)
    ]
    write_rows(page.folder / "test.jsonl", rows)
    page.replaced["opc:FILE"] = "opc:test.jsonl"


def proofbench(page: PageRun) -> None:
    """Some graded pairs in the form of ProofBench."""
    rows = [
        {
            "problem_id": f"q{n // 3}",
            "problem": f"{PROBLEM} ({n // 3})",
            "generator": "m",
            "model_solution": f"Attempt {n}: write them as 2a+1 and 2b+1.",
            "reference_solution": "Write them as 2a+1 and 2b+1.",
            "expert_rating": [0, 7, 5, 6][n % 4],
            "marking_scheme": "1 point for the form 2a+1",
            "metadata": {"contest": "APMO", "contest_year": "2025"},
        }
        for n in range(435)  # as many as were published, which `--try` compares
    ]
    write_rows(page.folder / "test.jsonl", rows[:8])
    write_rows(page.folder / "train.parquet", rows)


def grades(page: PageRun) -> None:
    """Points of people and of a verifier."""
    rows = [{"problem_id": f"q{n // 2}", "human_grade": n, "model_grades": [n, 7 - n]} for n in range(8)]
    write_rows(page.folder / "mine.jsonl", [{**row, "expert": row["human_grade"]} for row in rows])


def graded(page: PageRun) -> None:
    """Proofs with people's points, to train on."""
    rows = [
        {
            "problem": f"{PROBLEM} ({n})",
            "proof": f"Attempt {n}: write them as 2a+1 and 2b+1.",
            "grade": n % 8,
            "max_grade": 7,
        }
        for n in range(40)
    ]
    write_rows(page.folder / "proofs.jsonl", rows)


def rollouts(page: PageRun) -> None:
    """Rollouts in verl's form: of three steps, and one file of them."""
    rows = [
        {
            "input": f"{PROBLEM} ({n // 4})",
            "output": "Step 1 holds. " * (n % 4 + 1) + f"\n### {n % 3 == 0}",
            "gts": str(n % 2 == 0),
            "score": float((n % 3 == 0) == (n % 2 == 0)),
            "step": 1,
        }
        for n in range(16)
    ]
    for step in (1, 2, 3):
        write_rows(
            page.folder / "runs" / "rollouts" / f"{step}.jsonl", [{**row, "step": step} for row in rows]
        )
    for name in ("rollouts.jsonl", "traces.jsonl"):
        write_rows(page.folder / name, rows)
    (page.folder / "ROLLOUTS").mkdir()
    write_rows(page.folder / "ROLLOUTS" / "1.jsonl", rows)
    (page.folder / "GSM8K_ROLLOUTS").mkdir()
    write_rows(page.folder / "GSM8K_ROLLOUTS" / "1.jsonl", [{**row, "gts": "1,000"} for row in rows])


def data(page: PageRun) -> None:
    """Problems of the lab as training data, in the folders that pages name, and the lab's model as MODEL."""
    from pv_lab import MODEL_DIR
    from pv_lab.dataset import make_rows, write_dataset

    for split in ("train", "test"):
        write_dataset(
            make_rows(split=split, count=16, seed=5, difficulty=2, p_true=0.5),
            page.folder / f"{split}.parquet",
        )
        for name in ("DIR", "DIR2", "DATA"):
            (page.folder / name).mkdir(exist_ok=True)
            shutil.copy(page.folder / f"{split}.parquet", page.folder / name)
    if not (page.folder / "MODEL").exists():
        shutil.copytree(MODEL_DIR, page.folder / "MODEL")


def published(page: PageRun) -> None:
    """Small files in the form of published sets, as `pv-data sources --get` writes them, in data, DATA and beside."""
    generators = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    gsm8k = [
        {
            "question": f"What is {n} + {n}?",
            "ground_truth": f"We add the two numbers: it is <<{n}+{n}={2 * n}>>{2 * n}.\nA: {2 * n}",
            **{
                name: {
                    "is_correct": (n + k) % 3 > 0,
                    "solution": f"We add the two numbers, in way {k}: {2 * n + ((n + k) % 3 == 0)}.",
                }
                for k, name in enumerate(generators)
            },
        }
        for n in range(40)
    ]
    steps = [
        {
            "id": f"gsm8k-{n}",
            "generator": "m",
            "problem": f"What is {n} + {n}? Explain.",
            "steps": [f"We add {n} and {n}.", f"That is {2 * n}."],
            "final_answer_correct": n % 2 == 0,
            "label": -(n % 2 == 0) or 1,
        }
        for n in range(20)
    ]
    olympiad = [
        {
            "id": n,
            "split": split,
            "subfield": "Number Theory",
            "source": "made",
            "question": f"{PROBLEM} Then do it for {n + 3} numbers.",
            "solutions": ["Write them as 2a+1 and 2b+1."],
            "final_answer": ["even"] if split == "OE" else None,
            "answer_type": "Need_human_evaluate",
        }
        for split in ("TP", "OE")
        for n in range(4)
    ]
    for folder in ("data", "DATA"):
        write_rows(page.folder / folder / "gsm8k_solutions" / "example_model_solutions.jsonl", gsm8k)
        write_rows(page.folder / folder / "processbench" / "gsm8k.jsonl", steps)
        write_rows(page.folder / folder / "olympiadbench" / "problems.jsonl", olympiad)
    write_rows(page.folder / "example_model_solutions.jsonl", gsm8k)
    write_rows(page.folder / "gsm8k.jsonl", steps)


def table(page: PageRun) -> None:
    """A table of attempts, which `pv-data sources` can read."""
    attempts = [
        {"text": "Let them be 2a+1 and 2b+1.", "grade": "correct"},
        {"text": "Try it.", "grade": "incorrect"},
    ]
    rows = [{"question": f"{PROBLEM} ({n})", "attempts": attempts} for n in range(4)]
    write_rows(page.folder / "attempts.jsonl", rows)
    write_rows(
        page.folder / "mine.jsonl", [{"problem": row["question"], "proof": "By induction."} for row in rows]
    )
    page.replaced |= {
        "--try FILE --column": "--try attempts.jsonl --column",
        "--try FILE": "--try mine.jsonl",
    }


PROBLEMS = (  # so different that none is a near-duplicate of another
    "Prove that the sum of two odd numbers is even.",
    "Show that a prime above 3 leaves the remainder 1 or 5 when it is divided by 6.",
    "Let f be continuous on a closed interval. Prove that f is bounded there.",
    "Prove that the square root of 2 is irrational.",
    "Show that every finite group of prime order is cyclic.",
    "In how many ways can eight rooks stand on a chessboard so that none attacks another? Justify it.",
    "Prove that there are infinitely many primes.",
    "Show that a tree with n vertices has n - 1 edges.",
    "Prove the inequality between the arithmetic and the geometric mean of two positive reals.",
    "Show that a polynomial of degree d over a field has at most d roots.",
)
CONFIG = """run_dir: RUN_DIR
sources: [{kind: table, path: proofs.jsonl, name: Mine}]
models: {judge: {endpoints: [{url: "http://127.0.0.1:8000/v1", model: judge}]}}
panel: [{model: judge, votes: 2}]
split: {test: 0.3}
duplicates: {threshold: null}
"""


def simulated(page: PageRun) -> None:
    """A free port for the simulated judges that the page starts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    page.replaced |= {
        "127.0.0.1:8001": f"127.0.0.1:{port}",
        "simulated_judges --": f"simulated_judges --port {port} --",
    }


def fresh(page: PageRun) -> None:
    """Nothing was run before: the page shows another way to do what it did."""
    shutil.rmtree(page.folder / "runs")


def data_run(page: PageRun) -> None:
    """A finished run of `pv-data run` with a panel, as runs/mine of mine.yaml, and as RUN."""
    panel(page)
    rows = [
        {
            "problem": PROBLEMS[n // 8],
            "proof": f"Attempt {n}: write them as 2a+1 and 2b+1.",
            "label": n % 2 == 0,
        }
        for n in range(80)
    ]
    write_rows(page.folder / "proofs.jsonl", rows)
    (page.folder / "mine.yaml").write_text(page.replace(CONFIG.replace("RUN_DIR", "runs/mine")))
    page.shell("pv-data run mine.yaml && cp -r runs/mine RUN", "setup data_run")


def unaudited(page: PageRun) -> None:
    """The run of `data_run` as it was before its audit."""
    shutil.rmtree(page.folder / "runs" / "mine")
    shutil.copytree(page.folder / "RUN", page.folder / "runs" / "mine")


def auditor(page: PageRun) -> None:
    """People who fill in the sheet of an audit, and two projects in Label Studio with a third reader."""
    from label_studio import annotation, export, tasks_of

    def fill() -> None:
        path = page.folder / "sheet.csv"
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["right"] = "yes"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    def annotate(tasks: str, *users: tuple[int, str]) -> None:
        for user, name in users:
            verdict = (
                "incorrect" if name == "bob.json" else "correct"
            )  # so that there is something for a third reader
            said = {one["proof_id"]: [annotation(user, verdict)] for one in tasks_of(page.folder / tasks)}
            export(page.folder / tasks, page.folder / name, said)

    page.before["pv-data audit record runs/mine sheet.csv"] = fill
    page.before["pv-data audit record runs/mine anna.json"] = lambda: annotate(
        "tasks.json", (1, "anna.json"), (2, "bob.json")
    )
    page.before["pv-data audit record runs/mine third-export.json"] = lambda: annotate(
        "third.json", (3, "third-export.json")
    )


def votes(page: PageRun, *names: str) -> None:
    """Runs of `pv-eval run` on a set: runs/base and runs/trained."""
    verifier(page)
    opc(page)
    run = f"pv-eval run --set opc:test.jsonl --verifier http://{page.replaced['localhost:8000']}/v1 -n 2 --no-report"
    commands = [f"{run} --model {name} --out runs/{name}" for name in names or ("base", "trained")]
    page.shell("\n".join(commands), "setup votes")


def more_votes(page: PageRun) -> None:
    """The same as runs/cheap and runs/dear."""
    votes(page, "cheap", "dear")


RUN_FOLDERS = (
    "RUN",
    "runs/small/2026-11-28_13-13-55",
    "runs/8b/DATE",
    "runs/8b-sweep/DATE",
    "runs/lab-sweep/DATE",
)


def run(page: PageRun) -> None:
    """Finished runs of the trainer at the places that pages name."""
    page.replaced["runs/8b/..."] = "RUN"
    sweeps = [f"runs/lab-sweep/2026-11-28_09-00-00/{n}" for n in range(4)]
    for number, name in enumerate([*RUN_FOLDERS, *sweeps]):
        folder = page.folder / name
        eta, seed = (0.3, 0.6)[number % 2], number // 2
        write_rows(
            folder / "metrics.jsonl",
            [
                {
                    "step": n,
                    "data": {"critic/score/mean": n / 50 + eta / 9, "response_length/mean": 300.0 + n + seed},
                }
                for n in range(1, 21)
            ],
        )
        (folder / "run.json").write_text(json.dumps({"state": "finished", "attempts": 1}))
        (folder / ".hydra").mkdir()
        (folder / ".hydra" / "overrides.yaml").write_text(f"[recipe.eta={eta}, seed={seed}]")


def log(page: PageRun) -> None:
    """Metrics of another trainer as JSON lines, CSV and TensorBoard. They never end, so one frame is enough."""
    page.replaced["pv-rl watch --metrics FILE"] = "pv-rl watch --metrics trainer_log.jsonl"
    page.replaced["pv-rl watch --metrics"] = "pv-rl watch --once --metrics"
    steps = range(1, 11)
    write_rows(
        page.folder / "trainer_log.jsonl", [{"step": n, "loss": 1 / n, "reward": n / 10} for n in steps]
    )
    lines = ["step,policy_entropy,reward", *(f"{n},{1 / n},{n / 10}" for n in steps)]
    (page.folder / "export.csv").write_text("\n".join(lines) + "\n")
    page.shell(
        "python -c \"from torch.utils.tensorboard import SummaryWriter as W; w = W('runs/tensorboard'); "
        "[w.add_scalar('actor/entropy', 1 / n, n) for n in range(1, 11)]; w.close()\"",
        "setup log",
    )


def ledger(page: PageRun) -> None:
    """A ledger of 16 decisions of a judge, people's marks of them, and the config of a judge."""
    judge(page)
    rollouts(page)
    url = f"http://{page.replaced['localhost:8000']}/v1"
    page.shell(
        "pv-rl score --reward verdict_fluency --rollouts rollouts.jsonl --out scored.jsonl --set ledger=ledger "
        f"--set judge.endpoints='[{{url: \"{url}\", model: m}}]'",
        "setup ledger",
    )
    (page.folder / "judge.yaml").write_text(f'judge:\n  endpoints: [{{url: "{url}", model: other}}]\n')


def everything(page: PageRun) -> None:
    """All packages of the repository are installed."""
    page.shell(f"pip install -q --no-deps {page.machine.wheels}/*.whl", "setup everything")


def beside(page: PageRun) -> None:
    """The files of the page's own folder."""
    for file in (page.machine.clone / page.page).parent.iterdir():
        if file.is_file():
            shutil.copy(file, page.folder)
