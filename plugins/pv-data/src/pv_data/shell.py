"""What the commands share: YAML without duplicate keys, and lists of names."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from pv_judge.yaml_errors import check_aliases, yaml_errors
from pv_rl.plugins import Registry

__all__ = ["config_names", "load_yaml", "print_registry"]


def load_yaml(text: str) -> Any:
    """Read YAML. A key that is there twice, also a number, is an error: it may be two labels.

    Raises:
        ValueError: the text cannot be read, or a mapping has a key twice.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            own = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            made = super().construct_mapping(node, deep)
            if len({self.construct_object(key, deep=True) for key in own}) < len(own):
                raise yaml.constructor.ConstructorError(
                    problem=f"a key of {list(made)!r:.100} is given twice"
                )
            return made

    with yaml_errors():
        check_aliases(text)
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader


def config_names() -> list[str]:
    """The configs that come with pv-data."""
    return sorted(one.name[:-5] for one in files("pv_data.configs").iterdir() if one.name.endswith(".yaml"))


def print_registry(registry: Registry) -> None:
    """Print the names that a config can give."""
    from pv_judge.pages.blocks import Column, Table
    from pv_judge.pages.terminal import print_blocks, standard_output

    known = registry.entries()
    columns: list[Column[str]] = [
        Column("name", lambda name: name, left=True),
        Column("what it is", lambda name: known[name].meaning, left=True, wrap=True),
        Column("from", registry.owner, left=True),
    ]
    print_blocks([Table.of(columns, known)], standard_output())
