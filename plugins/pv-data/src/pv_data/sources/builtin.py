"""Built-in sources, registered through the hook that plugins use."""

from __future__ import annotations

from pv_data.hookspecs import SourceEntry, hookimpl
from pv_data.sources import (
    dsmathv2,
    gsm8k_solutions,
    latex,
    olympiadbench,
    opc,
    prmbench,
    processbench,
    student,
    table,
)
from pv_data.sources.presets import presets

__all__ = ["pv_data_sources"]


@hookimpl
def pv_data_sources() -> list[SourceEntry]:
    """Our sources."""
    return [
        SourceEntry(name="olympiadbench", read=olympiadbench.read, meaning="OlympiadBench, TP and OE"),
        SourceEntry(name="opc", read=opc.read, meaning="Open Proof Corpus, people's labels"),
        SourceEntry(name="processbench", read=processbench.read, meaning="ProcessBench, first wrong step"),
        SourceEntry(name="prmbench", read=prmbench.read, meaning="PRMBench, clean and corrupted solutions"),
        SourceEntry(
            name="gsm8k_solutions",
            read=gsm8k_solutions.read,
            meaning="GSM8K, four generators by final answer",
        ),
        SourceEntry(
            name="dsmathv2", read=dsmathv2.read, meaning="outputs of DeepSeekMath-V2, people's points"
        ),
        SourceEntry(name="latex", read=latex.read, meaning="LaTeX files, problems and solutions"),
        SourceEntry(name="table", read=table.read, meaning="JSON lines, JSON, CSV or Parquet, by columns"),
        SourceEntry(name="student", read=student.read, meaning="student work that two people marked"),
        *presets(),
    ]
