"""The weights that come with the lab, and the batches they were trained on."""

import json

import pytest

from pv_lab import MODEL_DIR
from pv_lab.evaluate import evaluate, generate_traces, held_out
from pv_lab.tokenizer import EOS, PAD, VOCABULARY, encode, make_tokenizer
from pv_lab.traces import TraceMix
from pv_lab.warmstart import IGNORED, make_batch
from pv_rl.verdict import parse_verdict

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="module")
def model():
    return transformers.AutoModelForCausalLM.from_pretrained(MODEL_DIR).eval()


def test_the_model_is_small_and_its_vocabulary_is_the_tokenizers(model):
    assert isinstance(model, transformers.Qwen3ForCausalLM)
    assert 0.8e6 < model.num_parameters() < 1.0e6
    assert model.config.vocab_size == len(make_tokenizer()) == len(VOCABULARY)
    assert model.generation_config.eos_token_id == VOCABULARY[EOS]
    assert model.generation_config.pad_token_id == VOCABULARY[PAD]
    assert sum(path.stat().st_size for path in MODEL_DIR.iterdir()) < 4e6


def test_sampled_traces_have_a_verdict_and_are_of_both_lengths(model):
    tokenizer = make_tokenizer()
    traces = generate_traces(model, held_out(64, difficulty=2), seed=0, max_tokens=128)
    verdicts = [parse_verdict(tokenizer.decode(ids, skip_special_tokens=True)) for ids in traces]
    assert sum(verdict is not None for verdict in verdicts) >= 0.95 * 64
    assert {True, False} <= set(verdicts)
    lengths = [len(ids) for ids in traces]
    assert 0.35 < sum(n <= 8 for n in lengths) / 64 < 0.75
    assert 30 < max(lengths) <= 128


def test_an_evaluation_counts_both_classes(model, monkeypatch):
    def accept_or_break_off(model, samples, **_):
        """Accepts all but the last proof, whose trace has no verdict."""
        return [encode("looks fine ### True <eos>")] * (len(samples) - 1) + [encode("check S1")]

    monkeypatch.setattr("pv_lab.evaluate.generate_traces", accept_or_break_off)
    samples = held_out(10, difficulty=1)
    assert samples[-1].label  # so one right proof of five is not accepted
    result = evaluate(model, samples)
    assert (result.right_proofs, result.wrong_proofs, result.balanced) == (0.8, 0.0, 0.4)
    assert (result.parsable, result.short, result.traces) == (0.9, 1.0, 10)
    assert result.mean_length == 4.7


def test_the_record_says_how_the_weights_were_made():
    record = json.loads((MODEL_DIR / "training.json").read_text())
    assert record["command"].startswith("python -m pv_lab.warmstart")
    assert TraceMix(**record["mix"]) == TraceMix()
    assert record["held_out_by_difficulty"]["2"]["parsable"] >= 0.98


def test_a_warm_start_batch_learns_the_trace_alone_after_the_study():
    words = list(VOCABULARY)
    for step, learned_from in ((0, "<user>"), (1, "<assistant>")):
        ids, labels = make_batch(step, seed=0, size=8, mix=TraceMix(), study=1)
        for row, label in zip(ids, labels, strict=True):
            start = row.index(VOCABULARY[learned_from]) + 1
            end = row.index(VOCABULARY[EOS]) + 1
            assert label == [IGNORED] * start + row[start:end] + [IGNORED] * (len(row) - end)
            assert words[row[end - 2]] in ("True", "False")
    assert make_batch(1, seed=0, size=8, mix=TraceMix(), study=1) == (ids, labels)
