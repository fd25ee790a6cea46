"""YAML error handler: whatever PyYAML and OmegaConf raise for a text that they cannot read becomes one ValueError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["yaml_errors"]


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
        raise ValueError(" ".join(str(error).split())) from error
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise ValueError(f"a value does not fit its tag, such as !!int ({error})") from error
