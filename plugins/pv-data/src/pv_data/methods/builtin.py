"""Built-in generation methods, registered through the hook that plugins use."""

from __future__ import annotations

from pv_data.hookspecs import MethodEntry, hookimpl
from pv_data.methods.masking import MaskCompletion
from pv_data.methods.naive_negative import NaiveNegative
from pv_data.methods.prompted import Augment, OwnProof, Rephrase, Solution, Style, Translate

__all__ = ["pv_data_methods"]


@hookimpl
def pv_data_methods() -> list[MethodEntry]:
    return [
        MethodEntry(
            name="rephrase", build=Rephrase, meaning="a proof, written anew in the model's own style"
        ),
        MethodEntry(name="proof", build=OwnProof, meaning="the model proves the problem by itself"),
        MethodEntry(
            name="mask_completion",
            build=MaskCompletion,
            meaning="key steps of a proof are hidden, the model fills them in",
        ),
        MethodEntry(name="augment", build=Augment, meaning="a proof with one small change of wording"),
        MethodEntry(name="translate", build=Translate, meaning="a proof in another language"),
        MethodEntry(
            name="solution", build=Solution, meaning="the model solves a problem with a short answer"
        ),
        MethodEntry(
            name="naive_negative",
            build=NaiveNegative,
            meaning="refusals, empty talk, broken-off proofs: wrong by construction, no model asked",
        ),
        MethodEntry(name="style", build=Style, meaning="a proof as a forum, a textbook or an article has it"),
    ]
