"""Trying again what may succeed a moment later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def patiently(call: Callable[[], T], wait: Callable[[Exception, int], float | None], tries: int) -> T:
    """What ``call`` returns, called up to ``tries`` times.

    Args:
        wait: seconds to let pass after an error of the attempt (0, 1 ...), or None where another try makes no sense.
    """
    for attempt in range(tries - 1):
        try:
            return call()
        except Exception as error:
            seconds = wait(error, attempt)
            if seconds is None:
                raise
            time.sleep(seconds)
    return call()
