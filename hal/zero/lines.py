"""Lines of a gpiozero pin factory as an implementation of our ports.

Calls go directly to the factory and do not block for pins of this computer. Its callbacks run in its own threads; they
put the edge into a bounded buffer and wake the reader through Trio's token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar

import trio

from hal.errors import Fault, HalError
from hal.ports.digital import Bias, DigitalInput, DigitalOutput, Edge, EdgeEvents, InputSettings, OutputSettings
from hal.ports.pwm import PwmOutput
from hal.zero.library import refused

EDGE_BUFFER: Final = 4096  # maximum edges queued for a slow reader
DEFAULT_FREQUENCY: Final = 800.0  # Hz, until a frequency is set
_PULL: Final[dict[Bias, str]] = {"none": "floating", "up": "up", "down": "down"}

T = TypeVar("T")


def _call(what: str, action: Callable[[], T]) -> T:
    try:
        return action()
    except HalError:
        raise
    except Exception as error:  # gpiozero's factories raise any errors of their libraries
        raise refused(error, what) from error


class _Claim:
    """Reserves a pin, so that gpiozero's own devices report a conflict."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __repr__(self) -> str:
        return f"machine-server's {self._what}"

    def _conflicts_with(self, other: object) -> bool:
        return True


@contextmanager
def _taken(factory: Any, name: str) -> Iterator[Any]:
    claim = _Claim(name)
    _call(name, lambda: factory.reserve_pins(claim, name))
    try:
        yield _call(name, lambda: factory.pin(name))
    finally:
        factory.release_pins(claim, name)


@asynccontextmanager
async def digital_input(factory: Any, name: str, settings: InputSettings) -> AsyncIterator[DigitalInput]:
    """Open the pin `name` as an input. HalError: gone, busy, unsupported."""
    await trio.lowlevel.checkpoint()
    with _taken(factory, name) as pin:
        _call(name, lambda: _make_input(pin, settings))
        yield _Input(factory, pin, name, settings)


def _make_input(pin: Any, settings: InputSettings) -> None:
    pin.function = "input"
    if settings.bias != "as_is" and pin.pull != _PULL[settings.bias]:
        pin.pull = _PULL[settings.bias]


@asynccontextmanager
async def digital_output(factory: Any, name: str, settings: OutputSettings) -> AsyncIterator[DigitalOutput]:
    """Open the pin `name` as an output at its safe level; afterwards it stays an output at that level."""
    await trio.lowlevel.checkpoint()
    if settings.drive != "push_pull":
        raise HalError(
            f"{name}: gpiozero supports only push-pull outputs, not {settings.drive.replace('_', ' ')}",
            Fault.UNSUPPORTED,
            remedy="use the family linux",
        )
    with _taken(factory, name) as pin:
        output = _Output(pin, name, inverted=settings.active_low)
        _call(name, lambda: pin.output_with_state(settings.safe != settings.active_low))
        try:
            yield output
        finally:
            output.write(settings.safe)


@asynccontextmanager
async def pwm(factory: Any, name: str) -> AsyncIterator[PwmOutput]:
    """Open the pin `name` at low level for a wave by the factory; afterwards it stays low.

    HalError (unsupported) if the factory does not support waves.
    """
    await trio.lowlevel.checkpoint()
    with _taken(factory, name) as pin:
        _call(name, lambda: pin.output_with_state(False))
        _call(name, lambda: _set(pin, "frequency", DEFAULT_FREQUENCY))
        wave = _Wave(pin, name)
        try:
            yield wave
        finally:
            _call(name, lambda: _stop_wave(pin))


def _set(pin: Any, attribute: str, value: object) -> None:
    setattr(pin, attribute, value)


def _stop_wave(pin: Any) -> None:
    pin.state = 0
    pin.frequency = None
    pin.state = False


class _Input:
    def __init__(self, factory: Any, pin: Any, name: str, settings: InputSettings) -> None:
        self._factory = factory
        self._pin = pin
        self._name = name
        self._settings = settings
        self._listeners: list[_Edges] = []

    def read(self) -> bool:
        return bool(_call(self._name, lambda: self._pin.state)) != self._settings.active_low

    @asynccontextmanager
    async def edges(self) -> AsyncIterator[EdgeEvents]:
        await trio.lowlevel.checkpoint()
        edges = _Edges(self._factory, inverted=self._settings.active_low)
        self._listeners.append(edges)
        try:
            if len(self._listeners) == 1:
                _call(self._name, self._detect)
            yield edges
        finally:
            self._listeners.remove(edges)
            if not self._listeners:
                self._pin.when_changed = None

    def _detect(self) -> None:
        self._pin.bounce = self._settings.debounce or None
        self._pin.edges = "both"
        self._pin.when_changed = self._changed  # gpiozero keeps a weak reference

    def _changed(self, ticks: Any, state: Any) -> None:
        """Handle an edge; called in a thread of the factory."""
        for edges in tuple(self._listeners):
            edges.put(ticks, bool(state))


class _Edges:
    def __init__(self, factory: Any, *, inverted: bool) -> None:
        self.dropped = 0
        self._factory = factory
        self._inverted = inverted
        self._token = trio.lowlevel.current_trio_token()
        self._clock = trio.lowlevel.current_clock()
        self._queue: deque[Edge] = deque()
        self._arrived = trio.Event()

    def put(self, ticks: Any, state: bool) -> None:
        """Queue an edge, from any thread. An item of the queue is either read or dropped, never both."""
        age = max(0.0, self._factory.ticks_diff(self._factory.ticks(), ticks))
        if len(self._queue) >= EDGE_BUFFER:
            try:
                self._queue.popleft()
                self.dropped += 1
            except IndexError:
                pass  # the reader has taken it
        self._queue.append(Edge(state != self._inverted, self._clock.current_time() - age))
        try:
            self._token.run_sync_soon(self._wake, idempotent=True)
        except trio.RunFinishedError:
            pass

    def _wake(self) -> None:
        self._arrived.set()

    def __aiter__(self) -> _Edges:
        return self

    async def __anext__(self) -> Edge:
        await trio.lowlevel.checkpoint()
        while not self._queue:
            self._arrived = trio.Event()
            if not self._queue:
                await self._arrived.wait()
        return self._queue.popleft()


class _Output:
    def __init__(self, pin: Any, name: str, *, inverted: bool) -> None:
        self._pin = pin
        self._name = name
        self._inverted = inverted

    def read(self) -> bool:
        return bool(_call(self._name, lambda: self._pin.state)) != self._inverted

    def write(self, high: bool) -> None:
        _call(self._name, lambda: _set(self._pin, "state", high != self._inverted))


class _Wave:
    def __init__(self, pin: Any, name: str) -> None:
        self._pin = pin
        self._name = name
        self._wave = 0.0, DEFAULT_FREQUENCY

    def wave(self) -> tuple[float, float]:
        return self._wave

    def set_wave(self, duty: float, frequency: float) -> None:
        if not 0 <= duty <= 1:
            raise ValueError(f"a duty of {duty:g} is not valid: expected 0 to 1")
        if not frequency > 0:
            raise HalError(
                f"{self._name}: {frequency:g} Hz is not a valid frequency",
                Fault.UNSUPPORTED,
                remedy="use more than 0 Hz",
            )
        if frequency != self._wave[1]:
            _call(self._name, lambda: _set(self._pin, "frequency", frequency))
        _call(self._name, lambda: _set(self._pin, "state", duty))
        self._wave = duty, frequency
