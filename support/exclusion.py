"""A lock of threads that work together most of the time: many hold it together, or one alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Exclusion:
    """Lock of threads. A thread that waits to be alone comes before threads that begin meanwhile."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._together = 0  # threads that hold it together
        self._alone = 0  # threads that hold it alone, at most one, or wait for it

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold it with others. Blocks while a thread is alone, or waits for it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold it alone. Blocks until all that hold it together have ended; several take turns."""
        with self._changed:
            self._alone += 1
            try:
                self._changed.wait_for(lambda: not self._together)
            except BaseException:
                self._alone -= 1
                self._changed.notify_all()
                raise
            self._together += 1  # so that the next one waits
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                self._alone -= 1
                self._changed.notify_all()
