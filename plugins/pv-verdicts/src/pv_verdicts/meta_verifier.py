"""Meta-verifier: a judge that decides whether the errors that a verifier's trace names exist in the proof.

    reward = reward of the trace * (1 where the meta-verifier's score reaches `threshold`, else 0)

Without it a verifier is paid for a low grade that it justifies by errors that it made up (DeepSeekMath-V2, arXiv
2511.22570, section 2.1, where the score itself is the factor). The judge sees the problem, the proof and what the trace
says after its thoughts, and no label.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from pv_judge.answer import JudgeFailure, Messages
from pv_judge.config import STRICT
from pv_judge.json_answer import read_json, without_thoughts
from pv_judge.veto import JudgedVeto, JudgeOptions
from pv_rl.errors import ConfigError, DataError
from pv_rl.rewards.base import RewardInput
from pv_rl.rewards.fluency_veto import FluencyVeto
from pv_rl.verdict import after_thinking
from pv_verdicts.formats import FORMATS, build_format

__all__ = ["MetaOptions", "MetaVerifier"]

LONGEST_REASON = 4000
MATERIAL = ("problem", "proof")


@settings(frozen=True, kw_only=True, config=STRICT)
class MetaOptions(JudgeOptions):
    """The options of `meta_verified` that are its judge's."""

    threshold: float = Field(default=0.5, gt=0, le=1)
    """Score of the meta-verifier (0, 0.5 or 1) below which a trace is vetoed; 1: every named error has to exist."""
    format: str = "verdict"
    """Verdict format that reads what a trace concludes, from its reward where that is one."""
    format_options: Mapping[str, Any] = Field(default_factory=dict)


class MetaVerifier(JudgedVeto):
    """Asks about traces that reject a proof or give less than full points. The others name no error."""

    name = "meta_verifier"
    prompt = (files("pv_verdicts") / "prompts" / "meta_verifier.txt").read_text(encoding="utf-8")
    options_class = MetaOptions
    options: MetaOptions

    def __init__(self, options: JudgeOptions) -> None:
        if not isinstance(options, MetaOptions) or options.judge is None:
            raise ConfigError(
                "the reward meta_verified needs an LLM judge: set judge.endpoints, or in a verl config judge=deepseek"
            )
        super().__init__(options)
        self.form = build_format(options.format, options.format_options)
        for endpoint in options.judge.endpoints:
            if "'fluency'" in str(endpoint.extra_body):
                raise ConfigError(
                    "judge.endpoints.extra_body makes the server write the answer of the fluency judge, as "
                    "judge=vllm_local does, which the meta-verifier cannot read: use judge=openai_compatible"
                )

    @classmethod
    def reward(cls, **options: Any) -> FluencyVeto:
        """Build a reward that the meta-verifier vetoes: the options of `verdict_fluency`, `reward` by default `grade`.

        Raises:
            ConfigError: an option is unknown, of a wrong type or out of bounds, or there is no judge.
        """
        inner = options.setdefault("reward", "grade")
        if isinstance(inner, str) and FORMATS.find(inner) and "format" not in options:
            given = dict(options.get("reward_options") or {})
            given.pop("truth_key", None)
            options |= {"format": inner, "format_options": given}
        return FluencyVeto.build(cls.build, **options)

    def messages(self, sample: RewardInput) -> Messages | None:
        """Problem, proof and trace. The former are `problem` and `proof` of the row's extra_info, else its prompt.

        Raises:
            DataError: the row has neither.
        """
        answer = self.form.read(sample.response)
        accepts = answer.accepts if answer.grade is None else answer.grade >= 1
        if accepts is not False:
            return None  # it names no error, or concludes nothing and earns nothing
        material = {name: sample.extra.get(name) for name in MATERIAL}
        if not all(isinstance(text, str) and text.strip() for text in material.values()):
            material = {"task": sample.prompt}
        if not all(material.values()):
            raise DataError(
                "a row has neither extra_info.problem and extra_info.proof nor a prompt, so the meta-verifier cannot "
                "see the proof. Write both into extra_info of the data file, as pv-eval train-data does"
            )
        trace = after_thinking(sample.response)
        return self.instructions.messages(trace, **{name: str(text) for name, text in material.items()})

    @staticmethod
    def parse(text: str) -> float:
        """The score, 0, 0.5 or 1.

        Raises:
            JudgeFailure: the answer is not the one JSON object that was asked for.
        """
        match read_json(without_thoughts(text)):
            case {"score": (int() | float()) as score, "reason": str() as reason, **others} if (
                not others
                and not isinstance(score, bool)
                and score in (0, 0.5, 1)
                and len(reason) <= LONGEST_REASON
            ):
                return float(score)
        raise JudgeFailure(
            'the answer is not of the form asked for: {"score": 0, 0.5 or 1, "reason": a text}',
            "wrong_schema",
        )

    def decide(self, value: float) -> bool:
        return value < self.options.threshold
