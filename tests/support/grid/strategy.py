"""Steps and cuts for Hypothesis: any shape that fits into a second."""

from __future__ import annotations

from hypothesis import strategies as st

from grid.cases import Case
from grid.fixed import SPECS
from grid.oracle import Loss


@st.composite
def losses(draw) -> Loss:
    kl = draw(st.sampled_from([None, "k1", "mse", "low_var_kl"]))
    return Loss(
        policy=draw(st.sampled_from(["vanilla", "gspo", "gpg", "cispo"])),
        kl=kl,
        kl_coef=0.05 if kl else 0.0,
        entropy_coeff=draw(st.sampled_from([0.0, 0.02])),
    )


@st.composite
def specs(draw) -> str:
    eta = draw(st.integers(0, 100)) / 100
    return draw(st.sampled_from([*SPECS, f"balanced:{eta}", f"balanced:{eta}@batch"]))


@st.composite
def cases(draw) -> Case:
    length = st.one_of(st.integers(1, 12), st.integers(1, 120))
    group = st.lists(length, min_size=1, max_size=4).map(tuple)
    groups = tuple(draw(st.lists(group, min_size=1, max_size=3)))
    rows = sum(map(len, groups))
    return Case(
        name="drawn",
        groups=groups,
        spec=draw(specs()),
        loss=draw(losses()),
        is_weights=draw(st.booleans()),
        abstained=tuple(draw(st.sets(st.integers(0, rows - 1), max_size=rows - 1))),
        holes=draw(st.sampled_from([0.0, 0.3])),
        ranks=draw(st.sampled_from([1, 2, 4])),
        mini_rows=draw(st.integers(1, rows)),
        micro_rows=draw(st.sampled_from([None, 1, 2, 3])),
        micro_tokens=draw(st.integers(130, 500)),
        balance=draw(st.booleans()),
        shuffle=draw(st.booleans()),
        seed=draw(st.integers(0, 1000)),
    )
