"""The rows' keys in dumps of verl's V1 trainer, which stand where one would look for the prompt's id.

Symptom without this: every response is a prompt of its own, and `grpo` and `dapo` look the same. verl 0.9.1 writes
`PROMPT_SESSION_INDEX` under the name `uid` (verl/trainer/ppo/v1/trainer_base.py, `_log_rollout_data`; the format
is in agent_loop_tq.py). It can go when the dump has the prompt's id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["prompts_of_row_keys"]

ROW_KEY = re.compile(r"(.+)_[0-9]+_[0-9]+", re.DOTALL)


def prompts_of_row_keys(ids: Sequence[object]) -> list[str] | None:
    """The prompt's part of each key; None where the ids are not such keys.

    Example: `["a_0_0", "a_1_0", "b_0_0"]` gives `["a", "a", "b"]`. Ids that repeat are no keys of rows.
    """
    if len(set(ids)) < len(ids):
        return None
    matches = [ROW_KEY.fullmatch(key) if isinstance(key, str) else None for key in ids]
    found = [match[1] for match in matches if match is not None]
    return found if len(found) == len(ids) else None
