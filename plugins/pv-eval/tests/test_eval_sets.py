"""Sets: what is a pair, what is left out under which reason, and what is refused."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import places
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pv_data.records import Aside, Problem, Proof, Qpc
from pv_data.table import write_part
from pv_eval.sets.base import build_set
from pv_eval.sets.catalogue import open_set
from pv_eval.sets.overlap import find_overlap, settle, trained_on
from pv_eval.sets.sources import source_rows
from pv_eval.sets.truth import PointRule
from pv_rl.errors import ConfigError, DataError

SHARED = places.SHARED / "data"


def lines(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(n: int, label: object = True, **more: object) -> dict:
    return {
        "id": f"p{n}",
        "question_id": f"q{n % 3}",
        "problem": f"Prove {n % 3}.",
        "proof": f"Proof {n}.",
        **{"label": label},
        **more,
    }


def real(*parts: str) -> Path:
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    return path


def test_a_table_gives_pairs_and_counts_what_is_left_out(tmp_path):
    rows = [
        row(0, " Yes"),
        row(1, "no"),
        row(2, None),
        row(2, "NA"),
        row(3, "maybe"),
        row(3, "T"),
        row(4, False, proof="  "),
        row(5, 0),
    ]
    rows += [row(6, proof=7)]
    found = open_set(f"table:{lines(tmp_path / 'a.jsonl', rows)}")
    assert [(pair.pair_id, pair.question_id, pair.label) for pair in found.pairs] == [
        ("p0", "q0", True),
        ("p1", "q1", False),
        ("p5", "q2", False),
    ]
    assert found.left_out == {
        "no label": 2,
        "label cannot be read (first 'maybe' in line 5 of a.jsonl; expected true or false (also 1/0, yes/no, "
        "correct/incorrect, right/wrong), or empty for none)": 2,
        "blank proof": 1,
        "question or proof is not a text": 1,
    }
    assert found.counts == {"pairs": 3, "questions": 3, "right": 1, "wrong": 2}
    assert any(sentence.startswith("Left out of the set: no label: 2; ") for sentence in found.describe())


def test_a_csv_file_in_latin1_is_refused_and_not_altered(tmp_path):
    text = "problem,proof,label\nDies gilt für 2.,Klar.,true\n"
    for column, line in (("label", 2), ("würde", 1)):
        (tmp_path / "x.csv").write_bytes(text.replace("label", column).encode("latin-1"))
        with pytest.raises(DataError, match=rf"x\.csv is not UTF-8 \(line {line}\); write it again as"):
            open_set(f"table:{tmp_path / 'x.csv'}")
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    found = open_set(f"table:{tmp_path / 'x.csv'}")
    assert found.pairs[0].question == "Dies gilt für 2."
    (tmp_path / "x.csv").write_text(f"{text}A,B\nC,D,no,E\n", encoding="utf-8")
    left = open_set(f"table:{tmp_path / 'x.csv'}").left_out
    assert left == {"too few or too many cells (first in line 3 of x.csv)": 2}
    assert found.describe()[0] == "The set has 1 pair, 1 question, 1 right, 0 wrong."


def test_csv_parquet_and_jsonl_give_the_same_set(tmp_path):
    rows = [row(n, n % 2 == 0) for n in range(6)]
    lines(tmp_path / "set.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "set.parquet")
    with (tmp_path / "set.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    sets = [open_set(f"table:{tmp_path / 'set'}.{suffix}") for suffix in ("jsonl", "parquet", "csv")]
    assert sets[0].pairs == sets[1].pairs == sets[2].pairs
    assert len(sets[0].pairs) == 6


def test_a_column_may_have_another_name(tmp_path):
    rows = [{"Q": "Prove.", "A": "Done.", "ok": 1, "nr": 7}]
    path = lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(DataError, match="no column problem or question"):
        open_set(f"table:{path}")
    found = open_set(f"table:{path}", {"columns": {"problem": "Q", "proof": "A", "label": "ok"}})
    assert found.pairs[0].label is True
    for meaning in ("id", "pair_id"):
        columns = {"problem": "Q", "proof": "A", "label": "ok", meaning: "nr"}
        assert open_set(f"table:{path}", {"columns": columns}).pairs[0].pair_id == "7"
    with pytest.raises(ConfigError, match="columns has prove"):
        open_set(f"table:{path}", {"columns": {"prove": "A"}})


def test_a_pair_id_that_is_there_twice_is_refused_with_a_count(tmp_path):
    path = lines(tmp_path / "a.jsonl", [row(0), row(1), row(0, proof="Another."), row(1, proof="One more.")])
    with pytest.raises(DataError, match=r"2 pair ids more than once \('p0', 'p1'\)"):
        open_set(f"table:{path}")


def test_a_proof_with_both_labels_is_refused_and_one_that_repeats_is_flagged(tmp_path):
    rows = [row(0), row(3, False, proof="Proof  0.", problem="Prove 0.")]
    with pytest.raises(DataError, match="1 proof labelled both right and wrong"):
        open_set(f"table:{lines(tmp_path / 'a.jsonl', rows)}")
    rows[1]["label"] = True
    found = open_set(f"table:{lines(tmp_path / 'a.jsonl', rows)}")
    assert any("more than once" in note for note in found.notes)


def test_labels_by_several_rules_are_counted_and_one_can_be_asked_for(tmp_path):
    rows = [row(0, rule="human"), row(1, False, rule="human"), row(2, rule="unanimous 5 of 5")]
    path = lines(tmp_path / "a.jsonl", rows)
    found = open_set(f"table:{path}")
    assert found.rules == {"human": 2, "unanimous 5 of 5": 1}
    assert any("2 different rules" in note for note in found.notes)
    kept = open_set(f"table:{path}", {"rule": "human"})
    assert (kept.counts["pairs"], kept.left_out) == (2, {"label by another rule": 1})
    with pytest.raises(DataError, match=r"no pair with a label, .*.label by another rule: 3"):
        open_set(f"table:{path}", {"rule": "majority"})


def test_what_a_set_says_is_one_line_each_and_no_control_character(tmp_path):
    rows = [row(n, rule=f"rule {n}\x1b[2J\nend") for n in range(30)]
    said = open_set(f"table:{lines(tmp_path / 'a.jsonl', rows)}").describe()
    assert not any("\x1b" in sentence or "\n" in sentence for sentence in said)
    assert "20 further rules" in said[1]
    rows = [row(n, rule=None) for n in range(2)]
    assert "rule" not in " ".join(open_set(f"table:{lines(tmp_path / 'b.jsonl', rows)}").describe())


def test_points_become_labels_by_the_rule():
    def labels(rule: PointRule, most: float, *points: float) -> list[bool | None]:
        return [rule.label(rule.share(one, most)) for one in points]

    assert labels(PointRule(), 7, 7, 6, 0) == [True, False, False]
    assert labels(PointRule(), 21, 21, 20) == [True, False]
    gap = PointRule(positive=6, negative=1)
    assert labels(gap, 7, 7, 6, 5, 2, 1, 0) == [True, True, None, None, False, False]
    assert labels(gap, 21, 18, 17, 3) == [True, None, False]  # scaled by 3
    four = PointRule(most=4, least=1, positive=3)
    assert [four.share(one) for one in (1, 2.5, 4)] == [0, 0.5, 1]
    assert labels(four, 4, 1, 2, 3, 4) == [False, False, True, True]
    for wrong in (
        {"positive": 8},
        {"positive": 3, "negative": 3},
        {"most": 0},
        {"most": "7"},
        {"negative": True},
    ):
        with pytest.raises(ConfigError):
            PointRule(**wrong)


def test_proofbench_and_gradingbench_are_read_in_their_own_form(tmp_path):
    ours = [
        {
            "problem_id": "IMO-1",
            "problem": "P",
            "generator": "o3",
            "model_solution": f"s{n}",
            "expert_rating": n,
        }
        for n in (7, 6, 0)
    ]
    pq.write_table(pa.Table.from_pylist(ours), tmp_path / "train.parquet")
    found = open_set(f"proofbench:{tmp_path / 'train.parquet'}")
    assert found.name == "proofbench"
    assert [(pair.label, pair.slice, pair.question_id) for pair in found.pairs] == [
        (True, "o3", "IMO-1"),
        (False, "o3", "IMO-1"),
        (False, "o3", "IMO-1"),
    ]
    theirs = (
        "Grading ID,Problem ID,Problem,Solution,Grading guidelines,Response,Points,Reward,Problem Source\n"
    )
    theirs += 'GB-1,PB-1,"P, q",S,G,"A proof\nof two lines",7,Correct,x\nGB-2,PB-1,"P, q",S,G,B,1,Partial,x\n'
    theirs += "GB-3,PB-1,P,S,G,C,9,Correct,x\nGB-4,PB-1,P,S,G,C,none,Correct,x\n"
    (tmp_path / "g.csv").write_text(theirs)
    found = open_set(f"gradingbench:{tmp_path / 'g.csv'}")
    assert [(pair.pair_id, pair.label) for pair in found.pairs] == [("GB-1", True), ("GB-2", False)]
    assert found.left_out == {"points out of range": 1, "points are not a number": 1}


def test_files_that_cannot_be_read_are_refused_in_words(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "not.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "a.txt").write_text("")
    for name in ("not.parquet", "a.txt", "nowhere.csv"):
        with pytest.raises(DataError):
            open_set(f"table:{tmp_path / name}")
    with pytest.raises(DataError, match="it has no rows"):
        open_set(f"table:{tmp_path / 'empty.jsonl'}")


def test_names_and_options_that_there_are_not_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"'proofbenhc' is unknown.*proofbench"):
        open_set("proofbenhc:x.csv")
    with pytest.raises(
        ConfigError, match=r"has no option pozitive\. Did you mean positive\? It has positive, negative"
    ):
        open_set("proofbench:x.parquet", {"pozitive": 6})
    with pytest.raises(ConfigError, match="needs a file or folder"):
        open_set("table")


def test_a_source_gives_the_proofs_whose_label_is_known():
    problem = Problem(source="S", native_id="1", text="Prove it.")

    def proof(text: str, known: bool | None, method: str = "proof") -> Proof:
        return Proof(
            problem_id=problem.id,
            source="S",
            method=method,
            model="m",
            text=text,
            known=known,
            known_by="human",
        )

    read = [
        problem,
        proof("a", True),
        proof("b", False),
        proof("c", None),
        proof("a", True),
        proof("r", True, "ground_truth"),
        Aside(stage="source", row="4", reason="geometry"),
    ]
    found = build_set("s", source_rows(read))
    assert [(pair.proof, pair.label, pair.slice) for pair in found.pairs] == [
        ("a", True, "S/proof/m"),
        ("b", False, "S/proof/m"),
    ]
    assert Counter(found.left_out) == {
        "no label": 1,
        "proof is there already": 1,
        "reference proof": 1,
        "source: geometry": 1,
    }
    assert len(build_set("s", source_rows(read, references=True)).pairs) == 3


def triple(n: int, split: str = "test", method: str = "rephrase", rule: str = "human") -> Qpc:
    return Qpc(
        problem_id=f"q{n // 2}",
        proof_id=f"p{n}",
        problem=f"Prove number {n // 2}.",
        proof=f"Proof {n}.",
        label=n % 2 == 0,
        rule=rule,
        slice=f"Putnam/{method}/m",
        split=split,
    )


def test_a_run_gives_its_test_split_and_its_styles(tmp_path):
    rows = [
        triple(0),
        triple(1),
        triple(2, "train"),
        triple(4, method="style_forum"),
        triple(6, method="style_article"),
    ]
    write_part(tmp_path / "qpc" / "part-0.parquet", Qpc, rows)
    found = open_set(f"curated:{tmp_path}")
    assert (found.name, found.counts["pairs"], found.left_out) == ("curated", 4, {"split train": 1})
    styled = open_set(f"style:{tmp_path}")
    assert [pair.slice for pair in styled.pairs] == ["math forum", "research article"]
    assert styled.left_out == {"in no style": 2, "split train": 1}
    with pytest.raises(DataError, match="has no triples"):
        open_set(f"curated:{tmp_path / 'nowhere'}")
    with pytest.raises(ConfigError, match="split is 'dev'"):
        open_set(f"curated:{tmp_path}", {"split": "dev"})


def test_questions_that_were_trained_on_are_refused_dropped_or_kept_with_counts(tmp_path):
    write_part(tmp_path / "qpc" / "part-0.parquet", Qpc, [triple(n) for n in range(6)])
    found = open_set(f"curated:{tmp_path}")
    # q0 by its id, q1 by its text in another spelling, q2 is new; the row of the test split was not trained on
    rows = [
        {"problem_id": "q0", "problem": "x"},
        {"problem_id": "z", "problem": "PROVE  number 1."},
        {"problem_id": "q2", "problem": "y", "split": "test"},
    ]
    overlap = find_overlap(found, trained_on(lines(tmp_path / "train.jsonl", rows)))
    assert overlap.questions == {"q0": "problem id", "q1": "same text"}
    with pytest.raises(
        DataError, match=r"4 pairs of 2 questions were trained on .1 by problem id, 1 by same text"
    ):
        settle(found, overlap, "refuse")
    dropped = settle(found, overlap, "drop")
    assert [pair.pair_id for pair in dropped.pairs] == ["p4", "p5"]
    assert dropped.left_out == {"trained on": 4}
    assert any("are in the set" in note for note in settle(found, overlap, "keep").notes)
    clean = settle(
        found, find_overlap(found, trained_on(lines(tmp_path / "n.jsonl", [{"problem": "New."}]))), "refuse"
    )
    assert any("No question of the set was trained on" in note for note in clean.notes)
    with pytest.raises(DataError, match="names no problem"):
        trained_on(lines(tmp_path / "none.jsonl", [{"text": "a"}]))


def test_a_verl_file_says_what_was_trained_on(tmp_path):
    write_part(tmp_path / "qpc" / "part-0.parquet", Qpc, [triple(0), triple(2)])
    rows = [{"prompt": [{"role": "user", "content": "x"}], "extra_info": {"problem_id": "q1", "index": 0}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    overlap = find_overlap(open_set(f"curated:{tmp_path}"), trained_on(tmp_path / "train.parquet"))
    assert overlap.questions == {"q1": "problem id"}


def test_kinds_of_errors_are_slices(tmp_path):
    rows = [
        row(0, False, error_type="Incomplete_logic flow"),
        row(1, False, error_type="arithmetic"),
        row(2, False),
    ]
    found = open_set(f"error_types:{lines(tmp_path / 'a.jsonl', rows)}")
    assert [pair.slice for pair in found.pairs] == ["incomplete logic flow", "arithmetic"]
    assert found.left_out == {"no kind of error": 1}


def test_prmbench_gives_wrong_proofs_by_the_papers_kinds():
    path = real("prmbench", "prm800k_test_p1_classified.jsonl")
    own = open_set(f"error_types:{path}", {"own": True})
    kinds = Counter(pair.slice for pair in own.pairs)
    assert sum(kinds.values()) == own.counts["wrong"] == 310
    found = open_set(f"error_types:{path}")
    assert Counter(pair.slice for pair in found.pairs) == {
        "misusing unjustified assumptions": kinds["circular"] + kinds["domain_inconsistency"],
        "incomplete logic flow": kinds["missing_condition"],
        "making up non-existent conclusions": sum(
            kinds[kind] for kind in ("confidence", "counterfactual", "deception", "step_contradiction")
        ),
    }
    assert found.left_out["no label"] == 37  # superfluous steps
    assert found.left_out["uncorrupted solution"] == 221
    clean = open_set(f"error_types:{path}", {"clean": True})
    assert (clean.counts["right"], clean.counts["wrong"]) == (221, 310)


@pytest.mark.parametrize(
    ("name", "file", "right", "wrong"),
    [
        ("opc", "opc_dev.jsonl", 54, 88),
        ("dsmathv2", "dsmathv2_outputs.jsonl", 31, 11),
        ("processbench", "", 178, 247),
    ],
)
def test_real_sources_are_sets(name, file, right, wrong):
    found = open_set(f"{name}:{real(name, file)}")
    assert (found.counts["right"], found.counts["wrong"]) == (right, wrong)
    assert all(rule for rule in found.rules)
    with pytest.raises(ConfigError, match="has no option 'positiv'"):
        open_set(f"{name}:{real(name, file)}", {"positiv": 1})


def test_a_reworded_problem_is_found_in_the_training_set(tmp_path):
    text = "Let $a, b, c$ be positive real numbers with $a + b + c = 3$. Prove that $ab + bc + ca \\le 3$ always holds."
    rows = [
        row(0, problem=text, question_id="known"),
        row(1, problem="Prove that there are infinitely many primes."),
    ]
    found = open_set(f"table:{lines(tmp_path / 'a.jsonl', rows)}")
    trained = lines(
        tmp_path / "t.jsonl", [{"problem": text.replace("always holds", "holds").replace("Let ", "Let the ")}]
    )
    overlap = find_overlap(found, trained_on(trained))
    assert overlap.questions == {"known": "near-duplicate"}
