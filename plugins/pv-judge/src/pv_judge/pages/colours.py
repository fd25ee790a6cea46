"""A colour for each setting, told apart by colour-blind readers too."""

from __future__ import annotations

__all__ = ["choose_colours"]

APART = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's colours, but for yellow, which white paper swallows."""


def choose_colours(number: int, ordered: bool) -> list[str]:
    """`number` colours as `#rrggbb`: from dark to light where settings have an order, or are too many, else apart.

    Args:
        number: of settings.
        ordered: whether they are values of one number.
    """
    if (not ordered and number <= len(APART)) or number == 1:
        return list(APART[:number])
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale = colormaps["viridis"]  # grows lighter evenly; its yellow end is left out
    return [to_hex(scale(0.85 * place / (number - 1))) for place in range(number)]
