"""How many real proofs fit `mask_completion` and `truncated`, and how many real answers the reading leaves as they are.

    python benchmarks/generation_methods.py        # needs ../shared/data beside the checkout; a minute

docs/guides/methods.md quotes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pv_data.methods.base import Given, Unfit
from pv_data.methods.masking import MaskCompletion
from pv_data.methods.naive_negative import NaiveNegative
from pv_data.methods.prompted import OwnProof
from pv_data.records import Problem, Proof

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GENERATORS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).open(encoding="utf-8")]


def given(problem: str, proof: str, answer: str = "") -> Given:
    one = Problem(source="S", native_id="", text=problem, answer=answer)
    return Given(
        problem=one,
        proof=Proof(problem_id=one.id, source="S", method="ground_truth", text=proof),
        sample=0,
        seed=0,
    )


def olympiad(name: str) -> Iterator[Given]:
    for row in rows(f"olympiadbench/{name}_nongeometry.jsonl"):
        for proof in row["solutions"]:
            yield given(row["question"], proof, " ".join(row["final_answer"] or []))


def outcome(what: Callable[[], str]) -> str:
    try:
        return what()
    except Unfit as unfit:
        return unfit.reason


def main() -> None:
    opc, deepseek = rows("opc/opc_dev.jsonl"), rows("dsmathv2/dsmathv2_outputs.jsonl")
    gsm8k = rows("gsm8k_solutions/example_model_solutions.jsonl")
    answers = {
        "opc models": [given(row["problem"], row["proof"]) for row in opc],
        "dsmathv2": [given(row["problem"], row["proof"]) for row in deepseek],
        "gsm8k": [given(row["question"], row[one]["solution"]) for row in gsm8k for one in GENERATORS],
    }
    proofs = {
        "olympiadbench tp": list(olympiad("tp")),
        "olympiadbench oe": list(olympiad("oe")),
        "opc references": [given(row["problem"], row["reference_solution"]) for row in opc],
        "opc models": answers["opc models"],
    }
    for name, inputs in proofs.items():
        for method in (MaskCompletion(), NaiveNegative(forms=["truncated"])):
            found = Counter(outcome(lambda m=method, i=one: "fits" if m.prepare(i) else "") for one in inputs)
            print(f"{name}, {type(method).__name__}: {dict(found)} of {len(inputs)}")
    for name, inputs in answers.items():
        found = Counter(outcome(lambda i=one: read_as_answer(i)) for one in inputs)
        print(f"{name}, read as answers of proof: {dict(found)} of {len(inputs)}")


def read_as_answer(one: Given) -> str:
    assert one.proof is not None
    text = OwnProof().prepare(one).read(one.proof.text)
    return "unchanged" if text == one.proof.text.strip() else "without what is around it"


if __name__ == "__main__":
    main()
