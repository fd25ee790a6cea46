"""The source `table`: JSON, nested paths, lists, chats, templates and label maps; what is unclear is set aside."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import places
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources_cases import jsonl, problems, proofs, read, reasons

from pv_data.records import GROUND_TRUTH, Aside
from pv_data.sources.opening import open_source
from pv_rl.errors import ConfigError, DataError

CASE = places.SHARED / "cases" / "opc_as_published" / "rows.jsonl"
needs_case = pytest.mark.skipif(not CASE.is_file(), reason="the cases are not beside the repository")
PAIR = {"problem": "P?", "proof": "So."}
OTHER = {"problem": "Q?", "proof": "Thus."}


def table(folder: Path, *rows: object, **options: Any) -> list[Any]:
    return read("table", jsonl(folder / "a.jsonl", *rows), **options)


def known(rows: list[Any]) -> list[tuple[str, bool | None]]:
    return [(one.text, one.known) for one in proofs(rows)]


@needs_case
@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "json"])
def test_the_open_proof_corpus_is_read_as_it_is_published(tmp_path: Path, suffix: str):
    rows, path = [json.loads(line) for line in CASE.open(encoding="utf-8")], tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text(json.dumps(rows) if suffix == "json" else CASE.read_text())
    found = read("opc", path)
    assert [(one.native_id, one.text) for one in problems(found)] == [
        ("made_0", "Prove that the product of two odd integers is odd."),
        ("made_1", "Let $n$ be a positive integer. Prove that $n^2+n$ is even."),
    ]
    by_model = {(one.problem_id, one.model): one for one in proofs(found) if one.method == "proof"}
    first, second = (one.id for one in problems(found))
    assert {key: one.known for key, one in by_model.items()} == {
        (first, "provider/model-a"): True,
        (first, "provider/model-b"): False,
        (second, "provider/model-a"): True,
        (second, "provider/model-c"): False,
    }
    assert by_model[first, "provider/model-b"].text == r"Odd times odd is odd, as $3\cdot 5=15$ shows."
    assert [one.text for one in proofs(found) if one.method == GROUND_TRUTH] == ["A reference."] * 2
    assert len(proofs(read("opc", path, references=False))) == 4


@needs_case
def test_a_published_row_that_is_unclear_is_set_aside(tmp_path: Path):
    row = json.loads(CASE.open(encoding="utf-8").readline())
    text = row["prompt"][0]["content"]
    marked = text.replace("Write the", "### Model Solution: Write the")
    spoiled = [
        row | {"prompt": [{"role": "user", "content": marked}]},
        row | {"prompt": [{"role": "user", "content": text.replace("### Problem Statement:", "")}]},
        row | {"prompt": [*row["prompt"], *row["prompt"]]},
        row | {"prompt": None},
        row | {"reward_model": {"ground_truth": "maybe"}},
        row | {"reward_model": None},
        row | {"reward_model": {"style": "rule"}},
        row | {"solutions": 7},
    ]
    found = read("opc", jsonl(tmp_path / "a.jsonl", row, *spoiled))
    assert len([one for one in proofs(found) if one.method == "proof"]) == 1
    assert reasons(found) == {
        "cut: prompt": 2,
        "several turns of user: prompt": 1,
        "empty: prompt": 1,
        "no label: label": 2,
        "missing: reward_model.ground_truth": 1,
        "not a list: solutions": 1,
        "twice": 1,
    }


@needs_case
def test_a_reference_with_an_issue_is_not_taken_to_be_right(tmp_path: Path):
    row = json.loads(CASE.open(encoding="utf-8").readline())
    row["solutions"] = [
        {"solution": "Flawed.", "issue": "Big issue: no proof of this."},
        {"solution": "Sound."},
    ]
    found = read("opc", jsonl(tmp_path / "a.jsonl", row))
    assert [one.text for one in proofs(found) if one.method == GROUND_TRUTH] == ["Sound."]
    assert reasons(found) == {"reference with an issue": 1}


FORMS = {
    "a list": [PAIR, OTHER],
    "by key": {"p-1": PAIR, "p-2": OTHER},
    "a list under a key": {"version": 2, "data": [PAIR, OTHER]},
    "a list under several": {"version": 2, "data": {"test": [PAIR, OTHER], "note": "x"}},
    "lines": "\n".join(json.dumps(one) for one in (PAIR, OTHER)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_json_is_read_in_each_form(tmp_path: Path, form: str, packed: bool):
    text = FORMS[form] if isinstance(FORMS[form], str) else json.dumps(FORMS[form])
    content = b"\xef\xbb\xbf" + text.encode()
    path = tmp_path / ("a.json.gz" if packed else "a.json")
    path.write_bytes(gzip.compress(content) if packed else content)
    rows = read("table", path, rows="data.test" if form == "a list under several" else "")
    assert known(rows) == [("So.", None), ("Thus.", None)]
    by_place = [f"{path.name}:1", f"{path.name}:2"]
    assert [one.native_id for one in problems(rows)] == (["p-1", "p-2"] if form == "by key" else by_place)


def test_a_row_of_a_json_file_that_may_mean_two_things_is_set_aside_and_the_others_are_read(tmp_path: Path):
    good, path = json.dumps(PAIR), tmp_path / "a.json"
    nan, twice = '{"problem": "Q?", "label": NaN}', '{"problem": "Q?", "x": [{"label": 1, "label": 0}]}'
    path.write_text(f"[{nan}, {twice}, 7, {good}]")
    rows = read("table", path)
    assert known(rows) == [("So.", None)]
    assert reasons(rows) == {"not JSON": 1, "key twice": 1, "not an object": 1}


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ('{"train": [{"problem": "P?"}], "test": [{"problem": "Q?"}]}', {}, "train, test. Name one of them"),
        ('{"data": [{"problem": "P?"}], "data": [{"problem": "Q?"}]}', {}, "key twice"),
        ('{"p": {"problem": "P?"}, "p": {"problem": "Q?"}}', {}, "key twice"),
        ('{"data": []}', {}, "missing: problem; the row has data"),
        ("[]", {}, "it has no rows"),
        ("[1]", {}, "not an object"),
        ('"text"', {}, "is a JSON str"),
        ("[{}", {}, "cannot be read as JSON"),
        ("[" * 100_000, {}, "cannot be read as JSON"),
        ('{"problem": {"0": "P?"}, "proof": {"0": "So."}}', {}, "missing: problem; the row has 0, id"),
        ('{"problem": ["P?", "Q?"], "proof": ["So.", "Thus."]}', {}, "not text: problem"),
        ('{"data": []}', {"rows": "data.test"}, "'test' is looked for, there are no keys"),
        ('{"data": {}}', {"rows": "rows"}, "'rows' is looked for, there are data"),
    ],
)
def test_a_json_file_of_another_form_is_refused_with_what_it_has(
    tmp_path: Path, text: str, options: dict[str, Any], said: str
):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=said):
        read("table", tmp_path / "a.json", **options)


def test_a_json_file_may_be_one_row_and_only_json_has_rows_under_a_key(tmp_path: Path):
    row = {"problem": "P?", "attempts": [{"text": "So.", "grade": 1}, {"text": "Thus.", "grade": 0}]}
    (tmp_path / "a.json").write_text(json.dumps(row))
    columns = {"proof": "attempts[].text", "label": "attempts[].grade"}
    rows = read("table", tmp_path / "a.json", rows=".", columns=columns)
    assert known(rows) == [("So.", True), ("Thus.", False)]
    with pytest.raises(DataError, match=r"no \.json file"):
        table(tmp_path, PAIR, rows="data")


NESTED = {
    "q": {"text": "P?"},
    "list": [{"text": "So."}, {"text": "Thus."}],
    "a.b": "right",
    "meta": {"x[0]": "m"},
}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("path", "text"), [("list[0].text", "So."), ("list[-1].text", "Thus."), ("list[1].text", "Thus.")]
)
def test_a_path_leads_into_objects_and_lists(tmp_path: Path, suffix: str, path: str, text: str):
    file = tmp_path / f"a.{suffix}"
    if suffix == "jsonl":
        jsonl(file, NESTED)
    else:
        pq.write_table(pa.Table.from_pylist([NESTED]), file)
    rows = read("table", file, columns={"problem": "q.text", "proof": path, "label": "a.b"})
    assert known(rows) == [(text, True)]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("q.other", "missing: q.other; where 'other' is looked for, there is text"),
        ("other.text", "missing: other.text; the row has q, list"),
        ("list.text", "missing: list.text; where 'text' is looked for, there is a list"),
        ("q[0]", "not a list: q"),
        ("list[2].text", "the list has 2 items"),
        ("list[-3].text", "the list has 2 items"),
        ("q..text", "missing: q..text"),
        ("q.", "missing: q."),
        ("[0]", r"missing: \[0\]"),
        ("list[0]text", r"missing: list\[0\]text"),
        ("list[user]", "no turn of user"),
        ("list[99999999999999999999]", "missing"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_with_what_there_is(tmp_path: Path, path: str, said: str):
    with pytest.raises(DataError, match=said):
        table(tmp_path, NESTED, columns={"problem": path})


def test_a_row_without_the_path_is_set_aside_and_a_null_on_the_way_is_no_value(tmp_path: Path):
    rows = table(
        tmp_path,
        {"problem": "P?", "proof": "So.", "r": {"label": "yes"}},
        {"problem": "Q?", "proof": "So.", "r": {}},
        {"problem": "R?", "proof": "So.", "r": None},
        columns={"label": "r.label"},
    )
    assert [one.known for one in proofs(rows)] == [True, None]
    assert reasons(rows) == {"missing: r.label": 1}
    optional = table(tmp_path, PAIR | {"x?": "m"}, OTHER, columns={"label": "r.label?", "model": "x?"})
    assert [(one.known, one.model) for one in proofs(optional)] == [(None, "m"), (None, "")]


def test_several_proofs_of_a_row_have_a_label_each(tmp_path: Path):
    row = {"problem": "P?", "g": ["So.", "", "Thus.", None, "Hence."], "ok": [True, True, False, True, None]}
    rows = table(tmp_path, row, columns={"proof": "g[]", "label": "ok[]"})
    assert known(rows) == [("So.", True), ("Thus.", False), ("Hence.", None)]
    assert [one.row for one in rows if isinstance(one, Aside)] == ["a.jsonl:1[1]", "a.jsonl:1[3]"]
    assert reasons(rows) == {"empty: proof": 2}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"g": ["So.", "Thus."], "ok": [True]}, "lists of unequal length"),
        ({"g": ["So.", "Thus."], "ok": []}, "lists of unequal length"),
        ({"g": ["So.", "Thus."], "ok": True}, "not a list: ok[]"),
        ({"g": "So.", "ok": [True]}, "not a list: g[]"),
        ({"g": ["So."]}, "missing: ok[]"),
        ({"g": [["So."]], "ok": [True]}, "not text: proof"),
        ({"g": [{"text": "So."}], "ok": [True]}, "not text: proof"),
    ],
)
def test_lists_of_which_nobody_can_tell_whose_label_is_whose_give_no_proof(
    tmp_path: Path, row: dict[str, Any], reason: str
):
    rows = table(
        tmp_path,
        {"problem": "P?", "g": ["Good."], "ok": [True]},
        {"problem": "Q?"} | row,
        columns={"proof": "g[]", "label": "ok[]"},
    )
    assert known(rows) == [("Good.", True)]
    assert reasons(rows) == {reason: 1}


def test_a_proof_that_a_row_labels_twice_in_two_ways_has_no_label(tmp_path: Path):
    row = {"problem": "P?", "g": ["So.", "So.", "Thus.", "Thus."], "ok": [True, False, True, True]}
    rows = table(tmp_path, row, columns={"proof": "g[]", "label": "ok[]"})
    assert known(rows) == [("Thus.", True)]
    assert reasons(rows) == {"twice, other label": 2, "twice": 1}


def test_one_label_for_several_proofs_is_not_given_to_each(tmp_path: Path):
    both = {"problem": "P?", "g": ["So.", "Thus."], "label": True}
    rows = table(tmp_path, both, {"problem": "Q?", "g": ["Good."], "label": None}, columns={"proof": "g[]"})
    assert known(rows) == [("Good.", None)]
    assert reasons(rows) == {"no label: label": 1}
    rows = table(tmp_path, {"problem": "P?", "g": ["So.", "Thus."], "label": None}, columns={"proof": "g[]"})
    assert known(rows) == [("So.", None), ("Thus.", None)]
    row = {"problem": "P?", "g": ["So."], "x": None, "y": None, "z": None}
    assert known(table(tmp_path, row, columns={"proof": "g[]", "label": ["x", "y", "z"]})) == [("So.", None)]
    good = {"problem": "P?", "g": ["So.", "Thus."], "each": [True, False], "all": None}
    mixed = {"problem": "Q?", "g": ["Hm.", "Hence."], "each": [None, True], "all": "yes"}
    rows = table(tmp_path, good, mixed, columns={"proof": "g[]", "label": ["each[]", "all"]})
    assert known(rows) == [("So.", True), ("Thus.", False)]
    assert reasons(rows) == {"no label: label": 1}


def test_a_reference_whose_label_is_unclear_is_not_taken_to_be_right(tmp_path: Path):
    rows = table(tmp_path, PAIR | {"label": None}, OTHER | {"label": "unknown"}, method=GROUND_TRUTH)
    assert [one.known for one in proofs(rows)] == [True, None]


def test_a_problem_whose_rows_name_two_splits_is_reported(tmp_path: Path):
    rows = table(tmp_path, PAIR | {"split": "train"}, PAIR | {"split": "test", "proof": "Thus."})
    assert [one.split for one in problems(rows)] == ["train"]
    assert reasons(rows) == {"twice, other split": 1}


def test_names_of_csv_columns_may_have_spaces_around_them(tmp_path: Path):
    (tmp_path / "a.csv").write_text("problem, proof, label\nP?, So., yes\n")
    assert known(read("table", tmp_path / "a.csv")) == [("So.", True)]


def test_a_proof_that_may_be_missing_leaves_the_problem(tmp_path: Path):
    rows = table(tmp_path, {"problem": "P?"}, {"problem": "Q?", "r": "So."}, columns={"proof": "r?"})
    assert (len(problems(rows)), known(rows), reasons(rows)) == (2, [("So.", None)], {})
    rows = table(
        tmp_path, {"problem": "P?", "r": None}, {"problem": "Q?", "r": "So."}, columns={"proof": "r"}
    )
    assert reasons(rows) == {"empty: proof": 1}


def test_a_file_in_which_each_proof_is_rejected_is_refused_with_the_first_reason(tmp_path: Path):
    rows = [PAIR | {"label": "good"}, OTHER | {"label": "bad"}]
    for more in ({}, {"reference": "label"}):
        with pytest.raises(
            DataError, match=r"a.jsonl:1: no label: label; label is 'good', which .* {correct: true}"
        ):
            table(tmp_path, *rows, columns={"proof": "proof", **more}, labels={"correct": True})


def test_an_item_that_lacks_a_value_costs_only_its_own_proof(tmp_path: Path):
    row = {
        "problem": "P?",
        "a": [{"t": "So.", "ok": 1}, {"t": "Thus."}, {"ok": 0}, None, {"t": "Hence.", "ok": 0}],
    }
    rows = table(tmp_path, row, columns={"proof": "a[].t", "label": "a[].ok"})
    assert known(rows) == [("So.", True), ("Hence.", False)]
    assert reasons(rows) == {"missing: a[].ok": 1, "missing: a[].t": 1, "empty: proof": 1}


def test_columns_of_labels_have_to_agree_where_both_give_one(tmp_path: Path):
    row = {
        "problem": "P?",
        "g": ["a", "b", "c", "d"],
        "x": [True, False, True, None],
        "y": [True, True, None, False],
    }
    columns = {"proof": "g[]", "label": ["x[]", "y[]"]}
    rows = table(tmp_path, row, columns=columns)
    assert known(rows) == [("a", True), ("c", True), ("d", False)]
    assert reasons(rows) == {"no label: label": 1}
    assert known(table(tmp_path, row | {"y": None}, columns=columns))[:2] == [("a", True), ("b", False)]
    both = {"problem": "P?", "proof": "So.", "x": "yes", "y": "no"}
    assert reasons(table(tmp_path, both, columns={"label": ["x", "y"]})) == {"no label: label": 1}


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "P?"},
    {"role": "assistant", "content": "So."},
]
SHAREGPT = [{"from": "human", "value": "P?"}, {"from": "gpt", "value": "So."}]
PARTS = [
    {"role": "user", "content": [{"type": "text", "text": "P?"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "So."}]},
]


@pytest.mark.parametrize("chat", [CHAT, SHAREGPT, PARTS])
@pytest.mark.parametrize(("problem", "proof"), [("m", "m"), ("m[user]", "m[assistant]"), ("m[-2]", "m[-1]")])
def test_a_chat_has_the_problem_in_its_users_turn(tmp_path: Path, chat: object, problem: str, proof: str):
    rows = table(tmp_path, {"m": chat}, columns={"problem": problem, "proof": proof})
    assert [one.text for one in problems(rows)] == ["P?"]
    assert known(rows) == [("So.", None)]


@pytest.mark.parametrize("first", [{}, {"id": 1}, {"name": None}])
def test_a_chat_may_be_json_text_as_in_a_csv_file(tmp_path: Path, first: dict[str, Any]):
    rows = table(
        tmp_path, {"m": json.dumps([first | one for one in CHAT])}, columns={"problem": "m", "proof": "m"}
    )
    assert [one.text for one in problems(rows)] == ["P?"]
    assert known(rows) == [("So.", None)]


@pytest.mark.parametrize(
    ("chat", "reason"),
    [
        ([*CHAT, *CHAT], "several turns of user: problem"),
        (CHAT[:2], "no turn of assistant: proof"),
        (CHAT[2:], "no turn of user: problem"),
        ([CHAT[1], {"role": "assistant", "content": None}], "empty: proof"),
        ([CHAT[1], {"role": "assistant", "content": [{"type": "image", "text": "x"}]}], "not text: proof"),
        ([CHAT[1], {"role": "assistant", "content": [{"type": "text", "text": 5}]}], "not text: proof"),
        ([CHAT[1], {"role": "assistant", "tool_calls": []}], "empty: proof"),
        ([CHAT[1], "So."], "not text: problem"),
        (CHAT[2], "turn of assistant: problem"),
        (str(CHAT), "chat as text: problem"),
        (json.dumps(CHAT)[:-1], "chat as text: problem"),
        (str([{"id": 1} | one for one in CHAT]), "chat as text: problem"),
        (
            json.dumps(CHAT).replace('"content": "So."', '"content": "No.", "content": "So."'),
            "chat as text: problem",
        ),
        (json.dumps({"messages": CHAT}), "not text: problem"),
        ("['P?', 'Q?']", "list as text: problem"),
        (json.dumps(["P?", "Q?"]), "list as text: problem"),
        ([CHAT[2], CHAT[1]], "turn of assistant before the user's: proof"),
        (json.dumps([*CHAT, *CHAT]), "several turns of user: problem"),
        ([], "not text: problem"),
    ],
)
def test_a_chat_in_which_a_turn_is_unclear_is_set_aside(tmp_path: Path, chat: object, reason: str):
    rows = table(tmp_path, {"m": CHAT}, {"m": chat}, columns={"problem": "m", "proof": "m"})
    assert known(rows) == [("So.", None)]
    assert reasons(rows) == {reason: 1}


@pytest.mark.parametrize(
    ("template", "text", "problem", "proof"),
    [
        ("#P:{problem}#S:{proof}", "x #P: P? #S: So.\n", "P?", "So."),
        ("#P: {problem}\n #S: {proof} #E", "#P:P?#S:So.#E and more", "P?", "So."),
        ("{problem}#S:{proof}", "P?#S:So.", "P?", "So."),
        ("#P:{problem}#G:{}#S:{proof}", "#P:P?#G:7 of 7#S:So.", "P?", "So."),
        ("#P{x}:{problem}#S:{proof}", "#P{x}:P?#S:So.", "P?", "So."),
    ],
)
def test_a_template_cuts_problem_and_proof_out_of_a_prompt(
    tmp_path: Path, template: str, text: str, problem: str, proof: str
):
    rows = table(tmp_path, {"p": text}, cut={"p": template})
    assert [one.text for one in problems(rows)] == [problem]
    assert known(rows) == [(proof, None)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#P: P? So.", "cut: p"),
        ("#S: So. #P: P?", "cut: p"),
        ("#P: P? #S: So. #S: Thus.", "cut: p"),
        ("#P: P? #P: Q? #S: So.", "cut: p"),
        ("#P: #S: So.", "empty: problem"),
        ("#P: P? #S:", "empty: proof"),
        ("", "empty: p"),
        (7, "not text: p"),
        ("#P: \x00 #S: So.", "NUL character: p"),
    ],
)
def test_a_text_that_a_template_does_not_cut_for_sure_is_set_aside(tmp_path: Path, text: object, reason: str):
    rows = table(tmp_path, {"p": "#P: P? #S: So."}, {"p": text}, cut={"p": "#P:{problem}#S:{proof}"})
    assert known(rows) == [("So.", None)]
    assert reasons(rows) == {reason: 1}


def test_a_hostile_text_is_cut_in_linear_time(tmp_path: Path):
    texts = ["#" * 900_000, "#P:" * 300_000, "#P: P? " + "#S" * 400_000, "x" * 999_000]
    began = time.monotonic()
    rows = table(
        tmp_path, {"p": "#P: P? #S: So."}, *({"p": one} for one in texts), cut={"p": "#P:{problem}#S:{proof}"}
    )
    assert reasons(rows) == {"cut: p": 4}
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "text", ["<think>Hm.</think>So.", "Hm.</think> So.", "So.", "<think>a</think><think>b</think>So."]
)
def test_thoughts_are_removed_where_a_config_says_so(tmp_path: Path, text: str):
    row = {"problem": "P?", "proof": text}
    assert known(table(tmp_path, row, thinking="remove")) == [("So.", None)]
    assert known(table(tmp_path, row)) == [(text, None)]


@pytest.mark.parametrize(
    "text",
    [
        "<think>Hm. So.",
        "<think>a</think><think>So.",
        "<think>So.</think>\n",
        "Let n = 2. <think>a</think>So.",
        "<think>a</think>Let n = 2. <think>b</think>So.",
        "<think>a</think>The tag </think> is quoted.",
    ],
)
def test_thoughts_from_which_a_proof_cannot_be_told_are_set_aside(tmp_path: Path, text: str):
    rows = table(tmp_path, PAIR, {"problem": "Q?", "proof": text}, thinking="remove")
    assert len(proofs(rows)) == sum(reasons(rows).values()) == 1


@pytest.mark.parametrize(
    ("labels", "value", "known"),
    [
        ({"Good": True, "bad": False}, " good ", True),
        ({"good": True, "bad": False}, "BAD", False),
        ({"good": True, "bad": False, "?": None}, "?", None),
        ({0: True, 1: False}, 0, True),
        ({0: True, 1: False}, "1.0", False),
        ({"0": True, "1": False}, 1.0, False),
        ({True: False, False: True}, "yes", False),
        ({True: True, False: False}, False, False),
        ({-1: True, ">= 0": False}, -1, True),
        ({-1: True, ">= 0": False}, 3, False),
        ({">= 6": True, "<=2": False, "> 2": None}, "6.5", "two"),
        ({">= 6": True, "<= 2": False}, "6.5", True),
        ({">= 6": True, "<= 2": False}, 0, False),
        ({">= 0.5": True, "< 0.5": False}, 2 / 3, True),
        ({">= 0.5": True, "< 0.5": False}, "0.3333333333333333", False),
        ({">= 0.5": True, "< 0.5": False}, 1e-5, False),
        ({">= 1e-5": True, "< 1e-5": False}, 0.1 + 0.2, True),
        ({">= 0.5": True, "?": False}, 10**16, True),
        ({"?": False, "1": True}, 10**16, "?"),
        ({"?": False, "1": True}, -(10**400), "?"),
        ({"null": True, ">= 0": False}, None, True),
        ({"null": True, ">= 0": False}, "", True),
        ({"null": True, ">= 0": False}, 0, False),
        ({"good": True}, "bad", "?"),
        ({"good": True}, None, "?"),
        ({1: True, 0: False}, True, "?"),
        ({">= 6": True, "<= 2": False}, 4, "?"),
        ({">= 6": True, "<= 2": False}, "six", "?"),
        ({">= 6": True, "<= 2": False}, True, "?"),
        ({"good": True}, ["good"], "?"),
        ({"good": True}, {"good": True}, "?"),
        ({"good": True}, 10**400, "?"),
        (None, "Yes", True),
        (None, "on", "?"),
        (None, "-1", "?"),
        (None, 2, "?"),
    ],
)
def test_a_label_means_what_the_map_says_and_nothing_else(
    tmp_path: Path, labels: Any, value: Any, known: Any
):
    rows = table(tmp_path, PAIR, OTHER | {"label": value}, labels=labels)
    if known in ("?", "two"):
        (aside,) = [one for one in rows if isinstance(one, Aside)]
        assert (aside.row, aside.reason) == ("a.jsonl:2", "no label: label")
        assert (
            "both right and wrong" if known == "two" else "is not in the option labels: {"
        ) in aside.detail
        assert len(proofs(rows)) == 1
    else:
        assert proofs(rows)[1].known is known


@pytest.mark.parametrize(
    "options",
    [
        {"labels": {"Yes": True, "yes ": False}},
        {"labels": {1: True, "1.0": False}},
        {"labels": {"good": "right"}},
        {"labels": {"good": None}},
        {"labels": {}},
        {"labels": ["good"]},
        {"labels": {">= six": True}},
        {"labels": {">= .": True}},
        {"columns": {"problem": "q[]"}},
        {"columns": {"label": "ok[]"}},
        {"columns": {"proof": "a", "steps": "b"}},
        {"columns": {"problem": ["a", "b"]}},
        {"columns": {"label": []}},
        {"columns": {"colour": "a"}},
        {"columns": {"problem": "p"}, "cut": {"p": "#P:{problem}#S:{proof}"}},
        {"cut": {"p": "#P:#S:"}},
        {"cut": {"p": "{problem}"}},
        {"cut": {"p": "#P:{problem}{proof}"}},
        {"cut": {"p": "#P:{problem}#S:{problem}"}},
        {"cut": {"p": 5}},
        {"cut": "#P:{problem}"},
        {"thinking": "drop"},
        {"source": "a/b"},
        {"rows": 5},
        {"references": "no"},
    ],
)
def test_options_that_cannot_be_are_refused_before_the_file_is_read(options: dict[str, Any]):
    with pytest.raises(ConfigError, match=next(reversed(options))):
        next(open_source("table", Path("not there.jsonl"), options))


def test_a_reference_has_to_be_named_and_is_given_once(tmp_path: Path):
    row = {"problem": "P?", "proof": "So.", "reference": "IMO 2015, problem 3", "steps": 4}
    assert known(table(tmp_path, row)) == [("So.", None)]
    rows = [
        row | {"ref": ["By induction.", None, "By symmetry."]},
        row | {"proof": "Thus.", "ref": ["By induction."]},
    ]
    found = table(tmp_path, *rows, columns={"reference": "ref[]"})
    assert [one.text for one in proofs(found) if one.method == GROUND_TRUTH] == [
        "By induction.",
        "By symmetry.",
    ]
    assert reasons(found) == {"empty: reference": 1}
    assert len(proofs(table(tmp_path, *rows, columns={"reference": "ref[]"}, references=False))) == 2


def test_a_list_of_texts_is_steps_only_where_the_config_says_so(tmp_path: Path):
    row = {"problem": "P?", "s": ["First.", "Then."], "label": "yes"}
    assert known(table(tmp_path, row, columns={"steps": "s"})) == [("First.\n\nThen.", True)]
    with pytest.raises(DataError, match="for the steps of one proof name it `steps`, for several write NAME"):
        table(tmp_path, row, columns={"proof": "s"})
    several = {"problem": "P?", "a": [{"s": ["First.", "Then."]}, {"s": ["Third."]}]}
    assert known(table(tmp_path, several, columns={"steps": "a[].s"})) == [
        ("First.\n\nThen.", None),
        ("Third.", None),
    ]
