"""Signals that arrive while a program starts: held until the program can stop in order.

It imports only small modules, so that a program can call `hold` first.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_DEFAULTS: Final[tuple[Any, ...]] = (signal.SIG_DFL, signal.default_int_handler)
_held: list[int] = []


def hold() -> None:
    """Hold the first SIGTERM or SIGINT from now on instead of ending the process; a second one ends it at once.

    Handlers that are installed already are kept, and signals that the parent process ignores stay ignored.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in _DEFAULTS:
            try:
                signal.signal(number, _hold_signal)
            except ValueError:  # not in the main thread, where handlers cannot be installed
                return


def held() -> int | None:
    """Return and clear the held signal. Call it after installing the program's own handler."""
    return _held.pop() if _held else None


def release() -> None:
    """Restore the default handlers, for a command that needs no ordered stop; raise a signal that was held."""
    for number, default in zip(_SIGNALS, _DEFAULTS, strict=True):
        if signal.getsignal(number) is _hold_signal:
            signal.signal(number, default)
    if (held_signal := held()) is not None:
        signal.raise_signal(held_signal)


def _hold_signal(number: int, frame: Any) -> None:
    if _held:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    _held.append(number)
