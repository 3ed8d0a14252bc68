"""How every training script ends: what went wrong is one line, and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable

from protoscore.errors import ProtoscoreError, first_line


def run(main: Callable[[list[str]], None]) -> None:
    """``main`` with the arguments of the command line, of a module that was started by its name."""
    try:
        main(sys.argv[1:])
    except (ProtoscoreError, OSError) as error:  # OSError: no such model or file, and transformers says which
        print(f"{main.__globals__['__spec__'].name}: {first_line(error)}", file=sys.stderr)
        raise SystemExit(2) from None
