"""Installation commands for messages: no package of this repository is on an index."""

__all__ = ["how_to_install"]

NEEDS = {
    "pv-data": ("pv-judge",),
    "pv-runs": ("pv-judge",),
    "pv-eval": ("pv-judge", "pv-verdicts", "pv-data"),
}
NEEDS["pv-lab"] = ("pv-judge", "pv-verdicts", "pv-runs", "pv-cpu")
"""What a package needs beside pv-rl."""
FOLDERS = {"pv-rl[verl]": "'.[verl]'", "pv-lab": "./examples/lab"}


def how_to_install(package: str) -> str:
    """What to run where `package` (or the extra `pv-rl[verl]`) is missing: in a clone, and with a folder of wheels."""
    folders = " ".join(FOLDERS.get(name, f"./plugins/{name}") for name in (*NEEDS.get(package, ()), package))
    return f"In a clone of pv-rl: pip install {folders}. With its wheels: pip install --find-links FOLDER '{package}'"
