"""Chat columns: messages with role and content (OpenAI) or from and value (ShareGPT); content as text or in parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pv_data.sources.reading.unusable import Unusable
from pv_judge.files import load_json

__all__ = ["only_message", "role_of", "said"]

TEXT_OF_DATA = re.compile(r"\s*(?:\[\s*)?\{\s*(['\"])\w+\1\s*:")
"""A list of objects, or an object, that a table holds as text."""
ALIASES = {"human": "user", "gpt": "assistant", "model": "assistant", "bot": "assistant"}


def said(value: Any, role: str, what: str, *, whoever: bool = False) -> Any:
    """The text of a chat, of a message or of a message's parts; any other value as it is.

    Args:
        value: of a column. A chat may be in it as JSON text, as in CSV files.
        role: whose turn of a chat it is, `user` or `assistant`.
        what: the column, for errors.
        whoever: take a single message of any role.

    Raises:
        Unusable: the chat has no turn of this role or several; a message is another's, or holds more than text.
    """
    if isinstance(value, str) and (found := TEXT_OF_DATA.match(value)):
        value = _from_text(value, what) if found[1] == '"' else value
        if isinstance(value, str):
            raise Unusable(
                f"chat as text: {what}", "the column holds a chat as text that is no JSON; write it as JSON"
            )
    if isinstance(value, str) and (ends := value.strip()[:2] + value.strip()[-2:]) in ("['']", '[""]'):
        raise Unusable(f"list as text: {what}", f"the column holds a list as text, {ends[:2]}...{ends[2:]}")
    if isinstance(value, list) and value and all(role_of(one) for one in value):
        value = only_message(value, role, what)
    elif (other := role_of(value)) not in ("", role) and not whoever:
        raise Unusable(
            f"turn of {other[:40]}: {what}", f"a turn of {role} was expected; write it as CHAT[{role}]"
        )
    if role_of(value):
        value = value["content"] if "content" in value else value.get("value")
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "type" in one for one in value):
        if other := [
            one["type"] for one in value if one["type"] != "text" or not isinstance(one.get("text"), str)
        ]:
            raise Unusable(f"not text: {what}", f"a part of the message is {str(other[0])[:60]!r}")
        value = "\n\n".join(one["text"] for one in value)
    return value


def _from_text(text: str, what: str) -> Any:
    try:
        return load_json(text, object_pairs_hook=_once)
    except ValueError as error:
        raise Unusable(f"chat as text: {what}", f"it is no JSON ({str(error)[:100]})") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object names one of its keys more than once")
    return made


def only_message(chat: list[Any], role: str, what: str) -> Any:
    """The one message of a role.

    Raises:
        Unusable: there is none, or there are several.
    """
    role = ALIASES.get(role, role)
    found = [number for number, one in enumerate(chat) if role_of(one) == role]
    if len(found) == 1:
        if role == "assistant" and "user" in (role_of(one) for one in chat[found[0] + 1 :]):
            raise Unusable(f"turn of assistant before the user's: {what}", "it may answer another problem")
        return chat[found[0]]
    if not found:
        roles = ", ".join(dict.fromkeys(role_of(one) or "none" for one in chat)) or "no message"
        raise Unusable(f"no turn of {role}: {what}", f"the chat has {roles}")
    column = what.partition("[")[0]
    raise Unusable(
        f"several turns of {role}: {what}",
        f"there are {len(found)}; name the message: {' or '.join(f'{column}[{one}]' for one in found[:4])}",
    )


def role_of(message: Any) -> str:
    """The role of a message, `user` or `assistant` for each of their names; empty for what is no message."""
    role = (message.get("role") or message.get("from")) if isinstance(message, Mapping) else None
    return ALIASES.get(role.lower(), role.lower()) if isinstance(role, str) else ""
