"""YAML reader of users' files: bounded, and every error of PyYAML and OmegaConf becomes one ValueError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from pv_judge.hydra_errors import unreadable

__all__ = ["check_aliases", "load_settings", "yaml_errors"]

MOST_REPEATED = 100_000
"""Values that all aliases of a text may stand for: OmegaConf copies what an alias names."""


@contextmanager
def yaml_errors() -> Iterator[None]:
    """Read YAML inside this context, and nothing else.

    PyYAML has a YAMLError, and lets errors of its own code through beside it: `!!int ''` is an IndexError, `!!bool a` a
    KeyError, `!!timestamp a` an AttributeError, deep nesting a RecursionError. OmegaConf raises an OSError without an
    errno for a file that holds a single number.

    Raises:
        ValueError: the text cannot be read. An OSError of the file itself passes through.
    """
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply, or contains itself") from error
    except (YAMLError, OmegaConfBaseException) as error:
        raise ValueError(unreadable(error)) from error
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise ValueError(f"a value does not fit its tag, such as !!int ({error})") from error


def load_settings(path: Path) -> Any:
    """A file as an OmegaConf config.

    Raises:
        ValueError: it cannot be read, or its aliases stand for too much.
        OSError: the file cannot be opened.
    """
    from omegaconf import OmegaConf

    text = path.read_text(encoding="utf-8")
    with yaml_errors():
        check_aliases(text)
        return OmegaConf.load(StringIO(text))


def check_aliases(text: str) -> None:
    """Count what the aliases stand for, without building it: ten lines of ten aliases each stand for 10^10 values.

    Raises:
        ValueError: more than `MOST_REPEATED` values, or a collection that contains itself.
        yaml.YAMLError: the text is no YAML.
    """
    import yaml

    sizes, repeated = dict[str, int | None](), 0  # of each anchor; None while its collection is open
    open_collections: list[tuple[str | None, int]] = []
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            open_collections.append((event.anchor, 1))
            if event.anchor is not None:
                sizes[event.anchor] = None
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_collections.pop()
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, 1
        elif isinstance(event, yaml.AliasEvent):
            anchor, known = None, sizes.get(event.anchor, 1)
            if known is None:
                raise ValueError(f"*{event.anchor:.50} contains itself")
            size = known
            repeated += size
            if repeated > MOST_REPEATED:
                raise ValueError(
                    f"its aliases stand for more than {MOST_REPEATED:,} values; write out what you need"
                )
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        if open_collections:
            outer, so_far = open_collections[-1]
            open_collections[-1] = (outer, so_far + size)
