"""Generating: each input gets its proofs or a reason why not, whatever the model writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from panel import JudgeServer, Script, make_tables, settings

from pv_data.hookspecs import MethodEntry
from pv_data.ids import PILOT, place
from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof
from pv_data.run.generate import Generating, methods
from pv_data.run.local_executor import run_local
from pv_data.table import read_rows, write_part
from pv_rl.errors import ConfigError, PluginError

WRITTEN = (
    "We argue by induction. The case n = 0 is clear, and the step adds 1 to both sides of the identity. Done."
)


def run_with(reply, run: Path, generate: list[dict], **more) -> list[Proof]:
    with JudgeServer(Script(reply=reply)) as server:
        job = Generating(run=run, config=settings(run, server.url, generate=generate, **more))
        run_local(job, 1)
        run_local(job, 1)
    return list(read_rows(run / "generated", Proof))


def tables(run: Path) -> None:
    make_tables(run, 40)
    (problem, *_) = read_rows(run / "problems", Problem)
    truth = Proof(
        problem_id=problem.id,
        source="Test",
        method=GROUND_TRUTH,
        text=WRITTEN + " " + "Adding zero changes nothing, which is the first axiom of addition.",
        known=True,
    )
    write_part(run / "proofs" / "01-00000.parquet", Proof, [truth], group=64)


def test_a_method_on_questions_writes_proofs_of_each(tmp_path):
    tables(tmp_path)
    made = run_with(lambda *_: WRITTEN, tmp_path, [{"method": "proof", "model": "big"}])
    problems = {one.id for one in read_rows(tmp_path / "problems", Problem)}
    assert {one.problem_id for one in made} == problems
    assert len(made) == 4
    for one in made:
        assert (one.method, one.model, one.text, one.known) == ("proof", "big", WRITTEN, None)
        assert one.slice == "Test/proof/big"
        assert one.origin.template.startswith("proof@")
        assert one.origin.usd > 0


def test_a_method_on_proofs_takes_those_of_the_methods_that_it_is_about(tmp_path):
    tables(tmp_path)
    (made,) = run_with(
        lambda *_: "Rewritten: " + WRITTEN, tmp_path, [{"method": "rephrase", "model": "small"}]
    )
    (truth,) = (one for one in read_rows(tmp_path / "proofs", Proof) if one.method == GROUND_TRUTH)
    assert (made.parent_id, made.problem_id, made.model) == (truth.id, truth.problem_id, "small")


def test_what_a_model_did_not_write_is_set_aside_with_the_reason(tmp_path):
    tables(tmp_path)
    assert (
        run_with(lambda *_: "I cannot help with that.", tmp_path, [{"method": "proof", "model": "big"}]) == []
    )
    aside = list(read_rows(tmp_path / "aside", Aside))
    assert len(aside) == 4
    assert {one.stage for one in aside} == {"generate"}
    assert all(one.reason and one.content == "I cannot help with that." for one in aside)


def test_samples_that_say_the_same_are_one_proof(tmp_path):
    tables(tmp_path)
    made = run_with(lambda *_: WRITTEN, tmp_path, [{"method": "proof", "model": "big", "samples": 3}])
    assert len(made) == 4
    assert len(list(read_rows(tmp_path / "aside", Aside))) == 8


def test_proofs_that_are_wrong_by_construction_need_no_model(tmp_path):
    tables(tmp_path)
    made = run_with(lambda *_: 1 / 0, tmp_path, [{"method": "naive_negative", "of": ["proof"], "samples": 2}])
    assert made
    assert {one.known for one in made} == {False}
    assert {one.model for one in made} == {""}


def test_a_share_is_of_the_questions_and_the_same_for_all_entries(tmp_path):
    tables(tmp_path)
    entries = [{"method": "proof", "model": name, "share": 0.5} for name in ("big", "small")]
    made = run_with(lambda *_: WRITTEN, tmp_path, entries, seed=3)
    wanted = {one.id for one in read_rows(tmp_path / "problems", Problem) if place(PILOT, 3, one.id) < 0.5}
    assert 0 < len(wanted) < 4
    for name in ("big", "small"):
        assert {one.problem_id for one in made if one.model == name} == wanted


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"method": "prof", "model": "big"}, "there is no generation method 'prof'. Did you mean proof?"),
        ({"method": "proof"}, "the method proof asks a model: name one"),
        ({"method": "naive_negative", "model": "big"}, "asks no model: name none"),
        (
            {"method": "proof", "model": "big", "options": {"colour": 1}},
            "options of proof: there is no option 'colour'. Options",
        ),
    ],
)
def test_an_entry_that_cannot_be_is_refused(entry, says, tmp_path):
    with pytest.raises(ConfigError, match=says):
        methods(settings(tmp_path, "http://127.0.0.1:1/v1", generate=[entry]))


def test_a_plugin_that_builds_no_method_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("pv_rl.plugins.Registry.named", lambda *_: MethodEntry(name="proof", build=dict))
    with pytest.raises(PluginError, match=r"the method proof of .* lacks needs_proof, template, prepare"):
        methods(settings(tmp_path, "http://127.0.0.1:1/v1", generate=[{"method": "proof", "model": "big"}]))
