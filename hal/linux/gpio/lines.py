"""Digital lines of the kernel's character device, through libgpiod 2 and without threads.

Levels are read and written directly, each by one ioctl. Edges have the kernel's time of the interrupt. The kernel
releases a line when the process ends for any reason, and most chips then keep the last level; in an ordered exit, an
output is set to its safe level first.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import gpiod
from gpiod.line import Bias, Direction, Drive, Edge, Value

from hal.errors import Fault, HalError
from hal.linux.gpio.chips import GROUP, find_chip
from hal.linux.gpio.edges import KERNEL_BUFFER, EdgeSource
from hal.ports.digital import DigitalInput, DigitalOutput, EdgeEvents, InputSettings, Line, OutputSettings

CONSUMER: Final = "machine-server"  # the user of our lines, as shown by other programs such as gpioinfo

_BIAS: Final = {"as_is": Bias.AS_IS, "none": Bias.DISABLED, "up": Bias.PULL_UP, "down": Bias.PULL_DOWN}
_DRIVE: Final = {"push_pull": Drive.PUSH_PULL, "open_drain": Drive.OPEN_DRAIN, "open_source": Drive.OPEN_SOURCE}
_RISING: Final = gpiod.EdgeEvent.Type.RISING_EDGE


@asynccontextmanager
async def digital_input(line: Line, settings: InputSettings) -> AsyncIterator[DigitalInput]:
    """Request a line as an input. HalError: gone, busy (with the name of the user), permission, unsupported."""
    request = _request(line, _input_settings(settings, Edge.NONE))
    source = EdgeSource(
        request.fd,
        request.read_edge_events,
        lambda event: event.event_type is _RISING,
        lambda: request.get_value(line.offset) is Value.ACTIVE,
        str(line),
    )
    try:
        yield _Input(request, line, settings, source)
    finally:
        source.close()
        request.release()


@asynccontextmanager
async def digital_output(line: Line, settings: OutputSettings) -> AsyncIterator[DigitalOutput]:
    """Request a line as an output at its safe level. Raises the same errors as `digital_input`."""
    request = _request(line, _output_settings(settings))
    try:
        yield _Output(request, line)
    finally:
        try:
            request.set_value(line.offset, Value(settings.safe))
        except OSError as error:
            if error.errno != errno.ENODEV:  # the chip is gone, so the line drives nothing
                raise HalError.of(error, f"{line} could not be driven to its safe level") from error
        finally:
            request.release()


def _input_settings(settings: InputSettings, edges: Any) -> Any:
    return gpiod.LineSettings(
        direction=Direction.INPUT,
        bias=_BIAS[settings.bias],
        active_low=settings.active_low,
        debounce_period=timedelta(seconds=settings.debounce),
        edge_detection=edges,
    )


def _output_settings(settings: OutputSettings) -> Any:
    return gpiod.LineSettings(
        direction=Direction.OUTPUT,
        drive=_DRIVE[settings.drive],
        active_low=settings.active_low,
        output_value=Value(settings.safe),
    )


def _request(line: Line, settings: Any) -> Any:
    description = find_chip(line.chip)
    if not 0 <= line.offset < description.lines:
        raise HalError(
            f"GPIO chip {description} has no line {line.offset}",
            Fault.GONE,
            remedy=f"use a line from 0 to {description.lines - 1}",
        )
    try:
        with gpiod.Chip(str(description.path)) as chip:
            try:
                return chip.request_lines({line.offset: settings}, consumer=CONSUMER, event_buffer_size=KERNEL_BUFFER)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                raise HalError(
                    f"{line} is used by {_owner(chip, line.offset)}",
                    Fault.BUSY,
                    remedy="end the program that uses it, or choose another line",
                ) from error
    except OSError as error:
        raise _request_error(error, line) from error


def _owner(chip: Any, offset: int) -> str:
    info = chip.get_line_info(offset)
    return info.consumer or ("another program" if info.used else "another function of the pin")


def _request_error(error: OSError, line: Line) -> HalError:
    if error.errno in (errno.EINVAL, errno.ENOTSUP, errno.ENXIO):
        return HalError(
            f"{line} does not support these settings: {error.strerror}",
            Fault.UNSUPPORTED,
            remedy="choose another line, bias or drive that the chip supports; debouncing needs interrupts",
        )
    return HalError.of(error, str(line), group=GROUP)


class _Input:
    def __init__(self, request: Any, line: Line, settings: InputSettings, source: EdgeSource) -> None:
        self._request = request
        self._line = line
        self._settings = settings
        self._source = source

    def read(self) -> bool:
        try:
            return self._request.get_value(self._line.offset) is Value.ACTIVE
        except OSError as error:
            raise HalError.of(error, str(self._line)) from error

    @asynccontextmanager
    async def edges(self) -> AsyncIterator[EdgeEvents]:
        """Listen for edges. The kernel detects edges only while there are listeners."""
        with self._source.listener() as listener:
            if self._source.listeners == 1:
                self._detect(Edge.BOTH)
            try:
                yield listener
            finally:
                if self._source.listeners == 1:
                    self._ignore()

    def _detect(self, edges: Any) -> None:
        try:
            self._request.reconfigure_lines({self._line.offset: _input_settings(self._settings, edges)})
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOTSUP, errno.ENXIO):
                raise HalError(
                    f"{self._line} has no interrupts: {error.strerror}",
                    Fault.UNSUPPORTED,
                    remedy="choose a line of a chip that has them",
                ) from error
            raise HalError.of(error, str(self._line)) from error

    def _ignore(self) -> None:
        try:
            self._detect(Edge.NONE)
        except HalError as error:
            if error.fault is not Fault.GONE:
                raise


class _Output:
    def __init__(self, request: Any, line: Line) -> None:
        self._request = request
        self._line = line

    def read(self) -> bool:
        try:
            return self._request.get_value(self._line.offset) is Value.ACTIVE
        except OSError as error:
            raise HalError.of(error, str(self._line)) from error

    def write(self, high: bool) -> None:
        try:
            self._request.set_value(self._line.offset, Value(high))
        except OSError as error:
            raise HalError.of(error, str(self._line)) from error
