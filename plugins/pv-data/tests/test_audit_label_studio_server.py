"""An audit of 60 proofs through a Label Studio server: two annotators, then a third, back to the bounds of the marks.

A server of its own environment, with three users who have legacy API tokens, for example

    pip install label-studio==1.23.2
    LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN=true label-studio start --username a@example.org --password ... --user-token T1

and `PV_LABEL_STUDIO_URL=http://localhost:8080 PV_LABEL_STUDIO_TOKENS=T1,T2,T3 pytest -m paths` on this file.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from audit_cases import write_run
from label_studio import annotation, tasks_of

from pv_data.audit import Mark, prove, read_audit
from pv_data.audit.marks import latest_marks
from pv_data.audit.readers import readers
from pv_data.records import Problem, Proof
from pv_data.run.label_studio import draw_tasks
from pv_data.run.label_studio_export import record_export
from pv_data.run.reading_list import agreed_labels, all_marks

URL = os.environ.get("PV_LABEL_STUDIO_URL", "")
TOKENS = os.environ.get("PV_LABEL_STUDIO_TOKENS", "").split(",")
pytestmark = [
    pytest.mark.paths,
    pytest.mark.skipif(
        not URL or len(TOKENS) != 3,
        reason="no Label Studio: PV_LABEL_STUDIO_URL and three PV_LABEL_STUDIO_TOKENS name a server and its users",
    ),
]
HOSTILE = (
    "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">",
    r"$\text{</mtext></math><script>document.title='ran'</script>}$ $\href{javascript:document.title='ran'}{x}$",
    "</div></script><!-- ]]> <![CDATA[ <iframe srcdoc='<script>parent.document.title=1</script>'></iframe>",
    "\u202egnorw\u202c \u2066isolated\u2069 zero\u200bwidth nul\x00 bell\x07 \ud800",
    r"$\frac{1}{ \left( x $ $$\begin{align} a \end{aligned}$$ $" + "{" * 1500 + "$",
    ("Then $x_1^2+\\frac{a}{b}\\le 1$ <b>holds</b>.\n" * 6000)[:200_000],
    "因为 $a\\equiv b \\pmod{n}$。 \"quotes\" 'and' &amp; \\u0041",
)


def connect(token: str) -> httpx.Client:
    return httpx.Client(base_url=URL, headers={"Authorization": f"Token {token}"}, timeout=120)


def call(client: httpx.Client, method: str, path: str, **given: Any) -> Any:
    answer = client.request(method, path, **given)
    answer.raise_for_status()
    return answer.json() if answer.content else None


def start_project(client: httpx.Client, tasks: Path) -> tuple[int, dict[str, int]]:
    """A project with the tasks, and the task ids of its proofs."""
    config = tasks.with_suffix(".xml").read_text(encoding="utf-8")
    project = call(client, "POST", "/api/projects", json={"title": tasks.stem, "label_config": config})["id"]
    kind = {"Content-Type": "application/json"}
    call(client, "POST", f"/api/projects/{project}/import", content=tasks.read_bytes(), headers=kind)
    there = call(client, "GET", f"/api/tasks?project={project}&page_size=500&fields=all")["tasks"]
    return project, {task["data"]["proof_id"]: task["id"] for task in there}


def annotate(client: httpx.Client, task: int, verdict: str | None, **said: str) -> int:
    skipped = verdict is None
    given = {
        "result": annotation(1, verdict, said=said)["result"],
        "lead_time": 60.0,
        "was_cancelled": skipped,
    }
    return call(client, "POST", f"/api/tasks/{task}/annotations/", json=given)["id"]


def exported(client: httpx.Client, project: int, file: Path) -> Path:
    answer = client.get(f"/api/projects/{project}/export", params={"exportType": "JSON"})
    file.write_bytes(answer.raise_for_status().content)
    return file


def test_an_audit_of_60_proofs_comes_back_as_the_bounds_of_its_marks(tmp_path):
    """The panel finds all right. Both readers find 5 wrong, each 4 others; the second cannot tell on 3, skips 1."""
    problems = [Problem(source="S", native_id=str(n), text=f"Prove $x>{n}$ <b>.") for n in range(15)]
    proofs = [
        Proof(
            problem_id=one.id,
            source="S",
            method="proof",
            model="ab"[k % 2],
            text=f"{n}.{k} {HOSTILE[(4 * n + k) % 7 if n < 4 else 6]}",
        )
        for n, one in enumerate(problems)
        for k in range(4)
    ]
    write_run(tmp_path, problems, proofs)
    tasks = tmp_path / "tasks.json"
    assert len(draw_tasks(tmp_path, tasks, pilot=1).proofs) == 60
    order = [data["proof_id"] for data in tasks_of(tasks)]
    both, ann_alone, bob_alone = order[:5], order[5:9], order[9:13]
    unsure, skipped, erred = order[13:16], order[16], order[17]
    ann, bob, cleo = map(connect, TOKENS)
    people = {
        str(call(one, "GET", "/api/current-user/whoami")["id"]): name
        for one, name in ((ann, "ann"), (bob, "bob"), (cleo, "cleo"))
    }
    one, of_ann = start_project(ann, tasks)
    two, of_bob = start_project(bob, tasks)
    for proof in order:
        said = {"fault": "logic", "step": "<script>1</script> $x$", "comment": "no"}
        annotate(ann, of_ann[proof], "incorrect" if proof in both + ann_alone else "correct", **said)
        verdict = (
            "incorrect" if proof in both + bob_alone else "cannot tell" if proof in unsure else "correct"
        )
        annotate(bob, of_bob[proof], None if proof == skipped else verdict, **said)
    names = {user: name for user, name in people.items() if name != "cleo"}
    files = [exported(ann, one, tmp_path / "e1.json"), exported(bob, two, tmp_path / "e2.json")]
    taken = record_export(tmp_path, files, names)
    assert (taken.recorded, taken.left_out, taken.read_by) == (
        119,
        {"tasks that were skipped": 1},
        {1: 1, 2: 59},
    )
    again = record_export(tmp_path, files, names)
    assert (again.recorded, again.unchanged) == (0, 119)

    # the skipped proof is read after all, and one annotation is changed by its author, who first erred
    annotate(bob, of_bob[skipped], "correct")
    again = annotate(bob, of_bob[erred], "incorrect")
    changed = annotation(1, "correct")["result"]
    call(bob, "PATCH", f"/api/annotations/{again}/", json={"result": changed})
    call(ann, "DELETE", f"/api/tasks/{of_ann[order[59]]}/")
    files = [exported(ann, one, tmp_path / "e3.json"), exported(bob, two, tmp_path / "e4.json")]
    taken = record_export(tmp_path, files, names)
    assert (taken.recorded, taken.read_by) == (2, {2: 60})
    assert len(read_audit(tmp_path).marks) == 49

    third = tmp_path / "third.json"
    assert len(draw_tasks(tmp_path, third, pilot=1, third=True).proofs) == 11
    three, of_cleo = start_project(cleo, third)
    decided = {proof: n % 3 > 0 for n, proof in enumerate([*ann_alone, *bob_alone, *unsure])}
    for proof, right in decided.items():
        annotate(cleo, of_cleo[proof], "correct" if right else "incorrect")
    annotate(bob, of_cleo[bob_alone[0]], "correct")
    taken = record_export(tmp_path, [exported(cleo, three, tmp_path / "e5.json")], {**people})
    assert (taken.recorded, sum(taken.left_out.values())) == (11, 1)

    # by hand: right, wrong and a third; right, cannot tell and a third, of whom two have to agree
    labels = agreed_labels(tmp_path)
    human = dict.fromkeys(order, True) | dict.fromkeys(both, False) | decided
    human = {proof: value for proof, value in human.items() if proof not in unsure or value}
    given = [
        Mark(
            slice=labels[proof].slice, question=labels[proof].problem_id, proof=proof, label=True, human=value
        )
        for proof, value in human.items()
    ]
    audit = read_audit(tmp_path)
    assert dict(audit.sizes) == Counter(mark.slice for mark in given)
    expected, found = prove(given, audit.sizes), prove(audit.marks.values(), audit.sizes)
    assert found.document() == expected.document()
    assert (found.audited.pooled.agree, found.audited.pooled.checked) == (51, 59)
    who = readers(latest_marks(all_marks(tmp_path)))
    assert Counter({one.auditor: one.marks for one in who.people}) == {"ann": 60, "bob": 60, "cleo": 11}
    (pair,) = who.pairs
    assert (pair.auditors, pair.agreement.number, pair.agreement.raw.value) == (("ann", "bob"), 57, 49 / 57)
    assert (who.in_dispute, who.unsettled) == (0, 1)
    pooled = found.audited.pooled
    print(  # noqa: T201  with -s, the figures of this audit
        {name: (one.agree, one.checked, round(one.lower, 4)) for name, one in found.audited.slices.items()},
        {name: state.verdict for name, state in found.states.items()},
        (pooled.agree, pooled.checked, round(pooled.lower, 4)),
        (pair.agreement, who.blind),
    )
