"""Signals that come while a program still starts: kept until it can stop in order.

Imports nothing heavy, so that `hold` can be the first thing that a program does.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_DEFAULTS: Final[tuple[Any, ...]] = (signal.SIG_DFL, signal.default_int_handler)
_held: list[int] = []


def hold() -> None:
    """Keep the first SIGTERM or SIGINT from now on instead of dying of it; a second one ends the process at once.

    A handler that somebody installed before stays, and so does a signal that the parent ignores.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in _DEFAULTS:
            try:
                signal.signal(number, _note)
            except ValueError:  # not in the main thread: signals are somebody else's
                return


def held() -> int | None:
    """The signal that was kept, once: asked when the program's own handler is installed."""
    return _held.pop() if _held else None


def release() -> None:
    """Restore the default behaviour, for a command that does not stop in order; act on what was kept."""
    for number, default in zip(_SIGNALS, _DEFAULTS, strict=True):
        if signal.getsignal(number) is _note:
            signal.signal(number, default)
    if (kept := held()) is not None:
        signal.raise_signal(kept)


def _note(number: int, frame: Any) -> None:
    if _held:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    _held.append(number)
