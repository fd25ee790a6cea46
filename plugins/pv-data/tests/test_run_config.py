"""A config that cannot mean what it says is refused before anything is paid."""

from __future__ import annotations

import re

import pytest
import yaml
from panel import make_tables, settings

from pv_data.run.collect import check_names
from pv_data.run.config import compose
from pv_rl.errors import ConfigError

URL = "http://127.0.0.1:9/v1"


def model(**more) -> dict:
    return {"endpoints": [{"url": URL, "model": "judge"}], **more}


TWO = {"a": model(), "b": model(revision="2")}
STYLE = {"method": "style", "model": "big", "options": {"style": "forum"}, "of": ["proof"]}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"models": {"a": model(), "b": model()}}, "models.a and models.b ask the same model"),
        (
            {
                "models": {
                    "a": model(prices={"judge": {"input": 100, "output": 1}}),
                    "b": model(revision="2", prices={"judge": {"input": 1, "output": 1}}),
                }
            },
            "judge has two prices",
        ),
        (
            {
                "models": {
                    "a": model(sampling={}, prices={"judge": {"input": 1, "output": 1}}),
                    "b": model(prices={"judge": {"input": 1, "output": 1}}),
                },
                "budget_usd": 1,
            },
            "budget_usd needs models.a.sampling.max_tokens",
        ),
        (
            {
                "models": {name: model(sampling={"max_tokens": -1}, revision=name) for name in ("a", "b")},
                "budget_usd": 1,
            },
            "budget_usd needs models.a.sampling.max_tokens",
        ),
        (
            {"models": TWO, "budget_usd": 1},
            "every model: models.a.prices has none for judge; models.b.prices has none for judge",
        ),
        ({"models": {"a": model(budget={"calls_per_run": 1}), "b": model()}}, "Set the run's budget_usd"),
        ({"models": {"a": model(response_format="json"), "b": model()}}, "response_format"),
        (
            {"models": TWO, "split": {"train_labels": ["pannel"]}},
            "train_labels",
        ),
        (
            {"models": TWO, "labels": {"rule": "majority", "needed": 1}},
            "more than half",
        ),
        (
            {
                "models": TWO,
                "generate": [
                    {"method": "proof", "model": "a"},
                    {"method": "proof", "model": "a", "sources": ["S"]},
                ],
            },
            "produces the same slices as an earlier entry",
        ),
        (
            {
                "models": TWO,
                "sources": [{"kind": "table", "path": "x", "name": "a/b"}],
            },
            "sources.0.name",
        ),
        (
            {"models": {"a": model(limits={"concurrency": 1}), "b": model(revision="2")}, "workers": 2},
            "less than the workers",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(more, says, tmp_path):
    with pytest.raises(ConfigError, match=says):
        settings(tmp_path, URL, **{"panel": [{"model": "a"}, {"model": "b"}], **more})


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"generate": [{"method": "proof", "model": "big", "sources": ["Tset"]}]}, "Did you mean Test"),
        ({"generate": [{"method": "rephrase", "model": "big", "of": ["prof"]}]}, "'prof' does not exist"),
        ({"labels": {"of": ["prooof"]}}, "labels.of: 'prooof' does not exist. Did you mean proof"),
        ({"split": {"discarded": ["Test/prof/m"]}}, "split.discarded: 'Test/prof/m' does not exist"),
        ({"split": {"discarded": ["Test/proof/n"]}}, "The run has Test/proof/m"),
        ({"split": {"discarded": ["Test/proof"]}}, "Did you mean Test/proof/m"),
        ({"split": {"discarded": ["Test/style/m"]}, "generate": [STYLE]}, "has Test/proof/m, Test/style/big"),
    ],
)
def test_a_name_that_nothing_has_is_refused_once_the_sources_are_read(more, says, tmp_path):
    make_tables(tmp_path, 10)
    slices = {"discarded": ["Test/proof/m", "Test/style/big"]}
    check_names(tmp_path, settings(tmp_path, URL, split=slices, generate=[STYLE]))
    with pytest.raises(ConfigError, match=says):
        check_names(tmp_path, settings(tmp_path, URL, **more))


VARS = """
vars: {out: runs/a, größe: .1, of: "${.out}", all: {x: one}}
run_dir: ${vars.of}
split: {test: "${vars.größe}"}
sources: [{kind: table, path: x.csv}]
"""


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (
            [],
            "vars.all: no ${...} of the config reads it. Remove it, or correct the name. "
            "Variables that are read: out, größe, of",
        ),
        (
            ["run_dir=${vars.al}", "title=${vars.al}"],
            "run_dir refers to vars.al, which the config does not have",
        ),
        (
            ["+title=${vars.all.x}", "vars.out=???", "vars.out_=b"],
            "vars.out_: no ${...} of the config reads it",
        ),
        (
            ["+title=${vars.all.x}", "vars.out_=b"],
            "vars.out_: no ${...} of the config reads it. Did you mean out?",
        ),
    ],
)
def test_a_variable_that_nothing_reads_is_refused(overrides, says, tmp_path):
    (tmp_path / "x.yaml").write_text(VARS)
    with pytest.raises(ConfigError, match=re.escape(says)):
        compose(str(tmp_path / "x.yaml"), overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        ["+title=${vars.all.x}"],
        ["filters.languages=${oc.dict.keys:vars}"],
        ["+title=${vars.all.x}", "run_dir=b"],  # nothing reads `of` any longer, but the file's run_dir did
    ],
)
def test_a_variable_may_be_read_anywhere(overrides, tmp_path):
    (tmp_path / "x.yaml").write_text(VARS)
    assert compose(str(tmp_path / "x.yaml"), overrides)


@pytest.mark.parametrize(
    "text",
    [
        "vars: {which: one, one: a}\ntitle: ${vars.${vars.which}}",
        "vars: {which: one, one: a}\ntitle: ${vars[${vars.which}]}",
        "vars: {c+: a}\ntitle: ${vars.c+}",  # no word character at the end, as in decomposed Unicode
    ],
)
def test_a_name_of_a_variable_may_be_computed_or_end_in_any_character(text, tmp_path):
    (tmp_path / "x.yaml").write_text(f"{text}\nrun_dir: r\nsources: [{{kind: table, path: x.csv}}]\n")
    assert compose(str(tmp_path / "x.yaml")).title == "a"


def test_a_file_may_replace_what_reads_a_variable_of_its_defaults(tmp_path):
    (tmp_path / "base.yaml").write_text(
        "vars: {x: a}\nrun_dir: ${vars.x}\nsources: [{kind: table, path: x.csv}]\n"
    )
    (tmp_path / "x.yaml").write_text("defaults: [base, _self_]\nrun_dir: r\n")
    assert compose(str(tmp_path / "x.yaml")).run_dir == "r"
    with pytest.raises(ConfigError, match=r"vars\.y: no "):
        compose(str(tmp_path / "x.yaml"), ["vars.y=a"])


def test_the_file_of_a_run_is_checked_for_aliases_once(tmp_path, monkeypatch):
    (tmp_path / "x.yaml").write_text("run_dir: a\nsources: [{kind: table, path: x.csv}]\n")
    checks, parse = [], yaml.parse
    monkeypatch.setattr(yaml, "parse", lambda *given: checks.append(given) or parse(*given))
    compose(str(tmp_path / "x.yaml"))
    assert len(checks) == 1
