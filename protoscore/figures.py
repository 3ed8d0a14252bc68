"""A number as text, once for terminals, pages, cards and notes."""

from __future__ import annotations

import math


def number(value: float, signed: bool = False, digits: int = 3) -> str:
    """``0.123`` or ``+0.123``; a dash where it is not defined, an infinite bound as the sign that it has."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "∞" if value > 0 else "-∞"
    rounded = round(value, digits) + 0.0  # adding 0 turns -0.0 into 0.0
    return f"{rounded:{'+' if signed else ''}.{digits}f}"


def p_value(p: float) -> str:
    """``0.032``, ``< 0.001``, or a dash where nothing was tested."""
    return "-" if not math.isfinite(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
