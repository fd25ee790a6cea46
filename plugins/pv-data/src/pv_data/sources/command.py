"""Command `pv-data sources`: lists the sources, tries one on a file, downloads a published set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pv_data.plugins import SOURCES
from pv_data.shell import load_yaml
from pv_rl.errors import ConfigError, PvRlError
from pv_rl.exits import errors_to_exit

__all__ = ["source_options", "sources"]


def _published() -> list[str]:
    from pv_data.sources.presets import published

    return [one.name for one in published().values() if one.files]


def sources(
    try_file: Annotated[
        Path | None,
        typer.Option(
            "--try", metavar="FILE", help="Show what would be read of this file or folder, row by row."
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="With --try: the source. If it is not given, each is tried.",
            autocompletion=lambda: [*SOURCES.entries()],
        ),
    ] = "",
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEANING=PATH",
            help="With --try: a column of kind `table`, `proof=attempts[].text`. Repeatable.",
        ),
    ] = None,
    options: Annotated[
        str, typer.Option(metavar="YAML", help="With --try: the `options` of a config, as YAML or as @FILE.")
    ] = "",
    rows: Annotated[int, typer.Option(min=0, help="With --try: how many rows to show.")] = 20,
    get: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Download a published set, and print its licence.", autocompletion=_published
        ),
    ] = "",
    to: Annotated[
        Path, typer.Option(metavar="DIR", help="With --get: the folder, `data_dir` of a config.")
    ] = Path("data"),
) -> None:
    """List the sources that a config can name; or try one on a file; or download a published set.

    Example: pv-data sources --try problems.csv --column problem=question
    """
    with errors_to_exit():
        if try_file is not None and get:
            raise ConfigError("--try and --get are both given; give one of them")
        if try_file is None and (kind or column or options):
            raise ConfigError("--kind, --column and --options go with --try FILE; give the file")
        if get:
            from pv_data.sources.download import download

            download(get, to, typer.echo)
        elif try_file is not None:
            _try(try_file, kind, source_options(options, column or []), rows)
        else:
            from pv_data.shell import print_registry

            print_registry(SOURCES)


def _try(path: Path, kind: str, options: dict[str, Any], rows: int) -> None:
    from pv_data.sources.trial import PLAIN, columns_block, fitting_kinds, trial
    from pv_judge.pages.terminal import print_blocks, standard_output
    from pv_judge.pages.text import visible

    console = standard_output()
    kinds = [kind] if kind else [PLAIN] if options else fitting_kinds(path)
    try:
        made = trial((kinds or [PLAIN])[0], path, options, shown=rows)
    except PvRlError:
        if block := columns_block(path):
            print_blocks([block], console)
        raise
    print_blocks(made.blocks(), console)
    if not made.labelled and (block := columns_block(path)):
        typer.echo(
            "No proof has a label. The file has these columns; name them with --column, and the words of its labels "
            "with --options '{labels: {WORD: true, OTHER: false}}':\n"
        )
        print_blocks([block], console)
    if len(kinds) > 1:
        typer.echo(f"Also read by {', '.join(kinds[1:])}: choose one with --kind.")
    typer.echo(f"\n{visible(made.config())}", nl=False)


def source_options(given: str, columns: list[str]) -> dict[str, Any]:
    """The options of a source from the command line.

    Args:
        given: `--options`, YAML or `@FILE`.
        columns: each `--column`, `MEANING=PATH`.

    Raises:
        ConfigError: one of them cannot be read.
    """
    try:
        text = Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given
        made = load_yaml(text) if text.strip() else {}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--options cannot be read as YAML ({' '.join(str(error).split())[:200]})"
        ) from error
    if not isinstance(made, dict):
        raise ConfigError(f"--options is {given[:80]!r}; it is a mapping, for example '{{licence: MIT}}'")
    for one in columns:
        meaning, equals, path = one.partition("=")
        if not equals or not meaning or not path:
            raise ConfigError(f"--column {one!r}; it is MEANING=PATH, for example problem=question")
        named = made.setdefault("columns", {})
        if not isinstance(named, dict) or meaning in named:
            raise ConfigError(
                f"--column gives {meaning} twice; give it once, for several labels in --options"
            )
        named[meaning] = path
    return made
