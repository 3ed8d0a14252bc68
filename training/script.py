"""How every training script ends: what went wrong is one line, and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from protoscore.errors import ProtoscoreError
from protoscore.modeling.checkpoint import first_line


def run(main: Callable[[list[str]], None]) -> None:
    """``main`` with the arguments of the command line."""
    try:
        main(sys.argv[1:])
    except (ProtoscoreError, OSError) as error:  # OSError: no such model or file, and transformers says which
        print(f"{Path(sys.argv[0]).stem}: {first_line(error)}", file=sys.stderr)
        raise SystemExit(2) from None
