"""Start of a program: signals that arrive before it can stop in order, and imports of its large modules.

It imports only small modules, so that a program can call `hold_signals` first.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

# Signals that end a program in order; on Windows also CTRL_BREAK, the only one that reaches another process.
if sys.platform == "win32":
    STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGBREAK)
else:
    STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_DEFAULTS: Final[tuple[Any, ...]] = (signal.SIG_DFL, signal.default_int_handler)
_held: list[int] = []


def hold_signals() -> None:
    """Hold the first SIGTERM or SIGINT from now on instead of ending the process; a second one ends it at once.

    Handlers that are installed already are kept, and signals that the parent process ignores stay ignored.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) in _DEFAULTS:
            try:
                signal.signal(number, _hold_signal)
            except ValueError:  # not in the main thread, where handlers cannot be installed
                return


def held_signal() -> int | None:
    """Return and clear the held signal. Call it after installing the program's own handler."""
    return _held.pop() if _held else None


def release_signals() -> None:
    """Restore the default handlers, for a command that needs no ordered stop; raise a signal that was held."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is _hold_signal:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if (pending := held_signal()) is not None:
        signal.raise_signal(pending)


def _hold_signal(number: int, frame: Any) -> None:
    if _held:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    _held.append(number)


@contextmanager
def lean_imports() -> Iterator[None]:
    """Import modules in this context without garbage collection, and without rich and asyncio, which structlog loads.

    Imported objects stay: scanning them takes a tenth of the start-up, and time in each later collection. So all
    objects that exist at the end are exempt from collections.
    """
    modules: dict[str, Any] = sys.modules  # None as a value is the documented way to make an import fail
    hidden = "rich" not in modules
    if hidden:
        modules["rich"] = None
    gc.disable()
    try:
        _import_structlog()
        yield
    finally:
        gc.freeze()
        gc.enable()
        if hidden:
            del modules["rich"]


class _Deferred(ModuleType):
    """A module that is imported when it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def _import_structlog() -> None:
    """Import structlog without asyncio: it uses it only for loggers of asyncio programs."""
    if "structlog" in sys.modules or "asyncio" in sys.modules:
        return
    sys.modules["asyncio"] = _Deferred("asyncio")
    try:
        importlib.import_module("structlog")
    finally:
        del sys.modules["asyncio"]
