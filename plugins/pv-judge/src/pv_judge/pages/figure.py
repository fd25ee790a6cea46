"""Figures by matplotlib: one place for the import, the colours, the style and atomic saving."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pv_judge.extras import needs
from pv_judge.files import check_target, write_atomically
from pv_rl.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_figure", "check_plot", "choose_colours", "clean", "new_figure", "save_figure", "to_png"]

APART = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can tell apart; without yellow, which white paper swallows."""
FORMATS = (".png", ".pdf", ".svg")


def check_figure(what: str) -> None:
    """Check before any work that a figure can be drawn.

    Args:
        what: needs it, a command or an option.

    Raises:
        SetupError: matplotlib is missing.
    """
    with needs("matplotlib", what, "pip install matplotlib"):
        import matplotlib  # noqa: F401


def check_plot(path: Path) -> None:
    """Check before any work that `--plot FILE` can be written.

    Raises:
        SetupError: matplotlib is missing.
        DataError: the file's suffix is not one of `FORMATS`, or its folder is missing.
    """
    if path.suffix not in FORMATS:
        raise DataError(f"--plot {path}: the suffix selects the format; use one of {', '.join(FORMATS)}")
    check_target("--plot", path)
    check_figure("--plot")


def choose_colours(number: int, ordered: bool = False) -> list[str]:
    """`number` colours as `#rrggbb`.

    Args:
        number: of settings.
        ordered: whether settings are values of one number: then, and where there are more than 18, from dark to light.
    """
    if (not ordered and number <= len(APART)) or number == 1:
        return list(APART[:number])
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if not ordered and number <= 18:  # nine hues of tab20 without its grey, then the same ones lighter
        hues = [hue for hue in range(10) if hue != 7]
        return [to_hex(colormaps["tab20"](2 * hues[n % 9] + n // 9)) for n in range(number)]
    scale = colormaps["viridis"]  # grows lighter evenly; its yellow end is left out
    return [to_hex(scale(0.85 * place / (number - 1))) for place in range(number)]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches. Without pyplot: no display, no global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def clean(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """A light grid, and no frame at the top and at the right."""
    axes.grid(alpha=0.25, axis=grid)
    axes.spines[["top", "right"]].set_visible(False)


def to_png(figure: Figure, dpi: int = 150) -> bytes:
    """The figure as a PNG file on white."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi)
    return file.getvalue()


def save_figure(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write the figure; the suffix selects the format. An error leaves an earlier file as it was."""
    write_atomically(path, lambda file: figure.savefig(file, format=path.suffix[1:], dpi=dpi))
