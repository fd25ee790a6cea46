"""Check of TRL's data sets for the labels that pv-rl's rewards read."""

from collections.abc import Sequence
from typing import Any

from pv_rl.errors import DataError

__all__ = ["check_label", "check_labels"]


def check_labels(trainer: Any) -> None:
    """Refuse a data set of `trl.GRPOTrainer` without the labels of a reward.

    Not checked: a data set to which a `rollout_func` or a transform may add columns.

    Raises:
        DataError: the column is missing.
    """
    sets = trainer.eval_dataset if isinstance(trainer.eval_dataset, dict) else {"": trainer.eval_dataset}
    for dataset in (trainer.train_dataset, *sets.values()):
        columns = getattr(dataset, "column_names", None)
        transformed = (getattr(dataset, "format", None) or {}).get("type") == "custom"
        if columns and not transformed and not getattr(trainer, "rollout_func", None):
            for function in trainer.reward_funcs:
                check_label(function, columns)


def check_label(function: Any, columns: Sequence[str]) -> None:
    """Refuse columns that lack the label of a reward function; one that is not of `reward_function` needs none.

    Raises:
        DataError: the column is missing.
    """
    label = getattr(function, "pv_rl_label", None)
    if label is not None and label not in columns:
        raise DataError(
            f"the data set has no column {label!r}, in which the reward {function.__name__!r} looks for labels; it has "
            f"{', '.join(columns)}. Rename a column, or set reward_function(label=...)"
        )
