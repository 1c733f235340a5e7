"""A thread that writes to a descriptor which may block, for programs whose system cannot tell whether it would."""

from __future__ import annotations

import os
import queue
import threading
from typing import Final

WAITING: Final = 1000
"""Texts that wait for the reader at most."""

CLOSING_LIMIT: Final = 1.0  # seconds


class ThreadedWriter:
    """Writes texts in their order, without delaying the caller. A descriptor that cannot be written loses them."""

    def __init__(self, descriptor: int) -> None:
        self._texts: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._descriptor = descriptor
        self._thread = threading.Thread(target=self._work, name=f"writer of descriptor {descriptor}", daemon=True)
        self._thread.start()

    def put(self, text: bytes) -> bool:
        """Queue a text; return False, without it, if too many wait."""
        try:
            self._texts.put_nowait(text)
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        """Wait for what is queued, at most CLOSING_LIMIT seconds. May be called more than once."""
        try:
            self._texts.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(CLOSING_LIMIT)

    def _work(self) -> None:
        while (text := self._texts.get()) is not None:
            try:
                while text:
                    text = text[os.write(self._descriptor, text) :]
            except OSError:
                continue  # its reader has ended
