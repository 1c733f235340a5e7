"""USB devices for tests of raw USB: the firmware behind their endpoints."""

from __future__ import annotations

from collections.abc import Callable

from hal.sim.target import Stall

READ, WRITE, REFUSE = 1, 2, 3  # vendor requests


class Echo:
    """A vendor device: bytes written to endpoint 0x01 come back at 0x81; requests 1 and 2 read and write a memory
    of 64 bytes at `value`, request 3 is refused.
    """

    def __init__(self) -> None:
        self.memory = bytearray(64)
        self.received: list[bytes] = []
        self._push: Callable[[int, bytes], None] | None = None

    def connected(self, push: Callable[[int, bytes], None]) -> None:
        self._push = push

    def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        if request != READ:
            raise Stall
        return bytes(self.memory[value : value + length])

    def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        if request != WRITE:
            raise Stall
        self.memory[value : value + len(data)] = data

    def write(self, endpoint: int, data: bytes) -> None:
        self.received.append(data)
        assert self._push is not None
        self._push(endpoint | 0x80, data)
