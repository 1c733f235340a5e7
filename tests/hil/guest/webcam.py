"""A simulated USB webcam for the kernel's own uvcvideo: motion JPEG over a bulk endpoint.

Descriptors and requests are those of the USB Video Class specification 1.0 (section numbers below) and of its MJPEG
payload; the device is plugged into the virtual host controller like any other of the plant.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import trio

from hal.sim.target import Stall
from tests.hil.guest.usb_cable import Descriptors, UsbCable

ENDPOINT: Final = 0x81
SIZES: Final = ((640, 480), (320, 240))
INTERVALS: Final = (666_666, 1_333_333)  # of 100 ns: 15 and 7.5 frames/s
PAYLOAD: Final = 65536  # maximum bytes of a payload
SET_CUR, GET_LEN, GET_INFO = 0x01, 0x85, 0x86
PROBE, COMMIT = 1, 2
NEGOTIATION: Final = struct.Struct("<HBBIHHHHHII")  # 4.3.1.1: video probe and commit controls


@dataclass(frozen=True)
class WebcamDescriptors(Descriptors):
    """Two interfaces: control (a camera and its output), and streaming by one bulk endpoint."""

    vendor: int = 0x1209
    product: int = 0x0CA3
    name: str = "Webcam"
    serial: str = "CAM0001"

    def device(self) -> bytes:
        """Return the device descriptor of a device with associated interfaces."""
        return super().device()[:4] + bytes([0xEF, 2, 1]) + super().device()[7:]

    def configuration(self) -> bytes:
        """Return the configuration descriptor: 3.5 to 3.10."""
        camera = struct.pack("<BBBBHBBHHHB3s", 18, 0x24, 2, 1, 0x0201, 0, 0, 0, 0, 0, 3, bytes(3))
        output = struct.pack("<BBBBHBBB", 9, 0x24, 3, 2, 0x0101, 0, 1, 0)
        length = 13 + len(camera) + len(output)
        control = struct.pack("<BBBHHIBB", 13, 0x24, 1, 0x0100, length, 6_000_000, 1, 1) + camera + output
        frames = b"".join(
            struct.pack(
                "<BBBBBHHIII", 26 + 4 * len(INTERVALS), 0x24, 7, index, 0, width, height, 1 << 20, 1 << 24, PAYLOAD
            )
            + struct.pack(f"<IB{len(INTERVALS)}I", INTERVALS[0], len(INTERVALS), *INTERVALS)
            for index, (width, height) in enumerate(SIZES, 1)
        )
        formats = struct.pack("<BBBBBBBBBBB", 11, 0x24, 6, 1, len(SIZES), 1, 1, 0, 0, 0, 0) + frames
        formats += bytes([6, 0x24, 13, 1, 1, 4])
        header = struct.pack("<BBBBHBBBBBBBB", 14, 0x24, 1, 1, 14 + len(formats), ENDPOINT, 0, 2, 0, 0, 0, 1, 0)
        body = (
            bytes([8, 11, 0, 2, 0x0E, 3, 0, 2])
            + bytes([9, 4, 0, 0, 0, 0x0E, 1, 0, 2])
            + control
            + bytes([9, 4, 1, 0, 1, 0x0E, 2, 0, 0])
            + header
            + formats
            + struct.pack("<BBBBHB", 7, 5, ENDPOINT, 2, 512, 0)
        )
        return struct.pack("<BBHBBBBB", 9, 2, 9 + len(body), 2, 1, 0, 0x80, 250) + body


class Webcam(UsbCable):
    """A webcam that sends `frame`, a JPEG image of 640x480 or 320x240, repeatedly, and nothing if `frozen`."""

    def __init__(self, frame: bytes, serial: str = "CAM0001") -> None:
        super().__init__(self, plugged=False)
        self.descriptors = WebcamDescriptors(serial=serial)
        self.frame = frame
        self.frozen = False
        self._chosen = [1, 1, INTERVALS[0]]  # format, frame, interval
        self._even = 0

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve the device and its frames while it is plugged in."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._deliver_frames)
            await super().run(task_status)

    async def _deliver_frames(self) -> None:
        while True:
            await trio.sleep(self._chosen[2] / 1e7)
            if self._waiting.get(ENDPOINT) and not self._data.get(ENDPOINT) and not self.frozen:
                self._even ^= 1
                payload = bytes([2, 0x80 | 2 | self._even]) + self.frame  # 2.4.3.3: end of frame, and which frame
                self.push(ENDPOINT, payload + b"\0" * (len(payload) % 512 == 0))

    def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """Answer requests to the streaming interface: 4.2 and 4.3; the control interface has no settings."""
        if index & 0xFF != 1 or value >> 8 not in (PROBE, COMMIT):
            raise Stall
        if request == GET_LEN:
            return struct.pack("<H", NEGOTIATION.size)
        if request == GET_INFO:
            return b"\x03"
        chosen = NEGOTIATION.pack(0, *self._chosen, 0, 0, 0, 0, 0, PAYLOAD, PAYLOAD)
        return chosen[:length]

    def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        """Accept requests to the streaming interface, see control_in."""
        if request != SET_CUR or index & 0xFF != 1 or value >> 8 not in (PROBE, COMMIT):
            raise Stall
        _, chosen_format, frame, interval, *_ = NEGOTIATION.unpack(
            data[: NEGOTIATION.size].ljust(NEGOTIATION.size, b"\0")
        )
        self._chosen = [chosen_format or 1, frame or 1, min(INTERVALS, key=lambda known: abs(known - interval))]
        self._data.pop(ENDPOINT, None)

    def write(self, endpoint: int, data: bytes) -> None:
        """Ignore data: there is no endpoint to write to."""
        raise Stall
