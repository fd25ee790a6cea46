"""The command `pv-data`."""

from __future__ import annotations

from typing import Annotated

import typer

from pv_data import __version__
from pv_data.audit.command import app as audit
from pv_data.duplicates.contamination_command import contamination_command
from pv_data.plugins import command_groups
from pv_data.run.commands import draw, record, run_command, status
from pv_data.shell import print_registry
from pv_data.sources.command import sources
from pv_rl.exits import new_app, version_option

__all__ = ["app"]

EVALUATION = dict.fromkeys(("eval", "report", "best-of-k", "eval-export"), "pv-eval")

app = new_app("pv-data", "Question-proof-check data: build, label, audit and evaluate.", EVALUATION)
app.command("run")(run_command)
app.command("contamination")(contamination_command)
app.command()(sources)
app.add_typer(audit, name="audit")
for step in (draw, record, status):
    audit.command()(step)
for group in command_groups():
    app.registered_commands += group.registered_commands


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, version_option(__version__)] = False) -> None:
    pass


@app.command()
def methods() -> None:
    """List the generation methods that a config can name.

    Example: pv-data methods
    """
    from pv_data.plugins import METHODS

    print_registry(METHODS)


@app.command()
def schema() -> None:
    """Print the JSON schema of a config of `pv-data run`, by which an editor completes and checks it.

    Example: pv-data schema > run.schema.json
    """
    import json

    from pv_data.run.config import run_schema

    typer.echo(json.dumps(run_schema(), indent=1))
