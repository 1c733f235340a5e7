"""Input controller `mux`: several input controllers as one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import ClassVar

import trio

from engine import Actuator, Attributes, Event, Extra, InputController, Started, Subscription, model
from models.combined.mux.attributes import MuxInputControllerConfig
from models.common.listeners import Listeners
from models.common.motion import run_all
from models.common.sources import ready_sources
from schema import ErrorKind, MachineError


@model("rdk:builtin:mux")
class MuxInputController(Actuator, InputController):
    """Has the controls of all its sources, and their events. It restarts when a source appears or disappears.

    If several sources have the same control, its state is the newest event of any of them.
    """

    Config: ClassVar[type[Attributes]] = MuxInputControllerConfig

    async def run(self, *, task_status: Started) -> None:
        """Follow the events of the sources until cancelled. PRECONDITION if no source is ready."""
        config: MuxInputControllerConfig = self.attributes
        sources = ready_sources(self, InputController, config.sources)
        self._listeners = Listeners()
        self._owners: dict[str, InputController] = {}  # by control, the first source that has it
        async with trio.open_nursery() as nursery:
            for source in sources.values():
                controls = await source.get_controls()
                for control in controls:
                    self._owners.setdefault(control, source)
                nursery.start_soon(self._follow, source, controls)  # first, so that no event is missed
                for event in await source.get_events():
                    self._take(event)
            task_status.started()

    def _take(self, event: Event) -> None:
        """Publish an event, unless it is older than the state of its control."""
        last = self._listeners.last.get(event.control)
        if last is None or last.time is None or event.time is None or event.time >= last.time:
            self._listeners.publish(event)

    async def _follow(self, source: InputController, controls: Sequence[str]) -> None:
        subscriptions = [Subscription(control, ("AllEvents",)) for control in controls]
        async with aclosing(source.stream_events(subscriptions)) as events:
            async for event in events:
                self._listeners.publish(event)

    def _owner(self, control: str) -> InputController:
        if control not in self._owners:
            raise MachineError(
                f"{self.name} has no control {control!r}",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(self._owners)}",
            )
        return self._owners[control]

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        """Return the controls of all sources."""
        await trio.lowlevel.checkpoint()
        return tuple(self._owners)

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        """Return the last event of each control."""
        await trio.lowlevel.checkpoint()
        return list(self._listeners.last.values())

    async def stream_events(
        self, events: Sequence[Subscription], *, extra: Extra = None
    ) -> AsyncGenerator[Event, None]:
        """Stream the subscribed events of all sources."""
        for subscription in events:
            self._owner(subscription.control)
        async with aclosing(self._listeners.stream(events)) as stream:
            async for event in stream:
                yield event

    async def trigger_event(self, event: Event, *, extra: Extra = None) -> None:
        """Let the first source that has the control simulate an event."""
        await self._owner(event.control).trigger_event(event, extra=extra)

    def _released(self) -> list[Actuator]:
        return list(dict.fromkeys(source for source in self._owners.values() if isinstance(source, Actuator)))

    async def stop(self, *, extra: Extra = None) -> None:
        """Let go of the controls of all sources whose events are triggered."""
        await run_all(*(partial(source.stop, extra=extra) for source in self._released()))

    async def is_moving(self) -> bool:
        """Return whether a control of such a source is held."""
        return any([await source.is_moving() for source in self._released()])
