"""JSON schema of settings, by which an editor completes and checks their YAML file."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

__all__ = ["json_schema", "part_of"]

INTERPOLATION = {"type": "string", "pattern": r"\$\{|^\?\?\?$"}
"""A value that Hydra fills in, in the place of a number, a list or one of some names."""
COMPOSED = {"defaults": {"type": "array"}, "hydra": {"type": "object"}}
"""Keys that Hydra takes out of a file."""


def json_schema(kind: Any, **more: Any) -> dict[str, Any]:
    """The schema of a file whose content `kind` is built from.

    Args:
        kind: a dataclass of pydantic.
        more: schemas of further keys of the file.
    """
    schema = _open(TypeAdapter(kind).json_schema())
    schema["properties"] |= COMPOSED | more
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def part_of(schema: dict[str, Any], key: str) -> dict[str, Any] | None:
    """The schema of what `# @package KEY` puts under a dotted key; None if the schema has no such key."""
    node: Any = schema
    for name in key.split("."):
        node = _mapping(schema, node.get("properties", {}).get(name))
        if node is None:
            return None
    return {**node, "properties": node.get("properties", {}) | COMPOSED, "$defs": schema["$defs"]}


def _mapping(schema: dict[str, Any], node: Any) -> Any:
    """The mapping that a property may be, its reference followed."""
    for one in (node or {}).get("anyOf", [node]):
        if one and (name := one.get("$ref")):
            return schema["$defs"][name.rpartition("/")[2]]
        if one and one.get("type") == "object":
            return one
    return None


def _open(node: Any) -> Any:
    """The same, where each value of a property may be an interpolation."""
    if isinstance(node, list):
        return [_open(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: _open(value) for key, value in node.items()}
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: _or_text(value) for name, value in made["properties"].items()}
    return made


def _or_text(value: dict[str, Any]) -> dict[str, Any]:
    if value.get("type") == "string" and not {"enum", "pattern", "minLength"} & value.keys():
        return value
    said = {key: value[key] for key in ("title", "description", "default") if key in value}
    rest = {key: one for key, one in value.items() if key not in said}
    return {**said, "anyOf": [*rest.get("anyOf", [rest] if rest else []), INTERPOLATION]} if rest else value
