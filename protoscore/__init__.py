"""Can I trust this text-to-image metric? Benchmarks, an evaluator and statistics for bias in multimodal evaluation.

    >>> from protoscore import ProtoScore, load
    >>> scorer = load("scorers", "constant")  # any component by kind and name, as on the command line

Importing the package imports nothing else; a name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from protoscore.catalog import load as load
    from protoscore.modeling.protoscore import ProtoScore as ProtoScore

__version__ = "0.1.0"
__all__ = ["ProtoScore", "__version__", "load"]

_HOMES = {"ProtoScore": "protoscore.modeling.protoscore", "load": "protoscore.catalog"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'protoscore' has no attribute {name!r}; it offers {', '.join(_HOMES)}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
