"""Input controller `gamepad`: a gamepad or joystick connected to this computer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Context, Event, Extra, InputController, Started, Subscription, model
from hal import Fault, HalError
from hal.ports import Controls, ControlsIdentity, HotplugEvents
from models.common.controls import CONTROLS
from models.common.listeners import Listeners
from models.devices.gamepad.attributes import GamepadConfig
from models.devices.gamepad.gamepad_map import GamepadMap, neutral
from models.devices.gamepad.health import NodeHealth
from schema import ErrorKind, MachineError

APPEARED: Final = frozenset({"add", "bind", "change", "move", "lost"})  # actions after which it may be connected again


@model("rdk:builtin:gamepad")
class Gamepad(InputController):
    """When the gamepad disconnects, every control returns to rest and sends Disconnect, to stop what it drives."""

    Config: ClassVar[type[Attributes]] = GamepadConfig
    attributes: GamepadConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._map = GamepadMap((), {})
        self._listeners = Listeners()
        self._identity: ControlsIdentity | None = None  # of the connected gamepad

    async def run(self, *, task_status: Started) -> None:
        """Run the driver; ready at once with `auto_reconnect`, else when connected. HalError if that fails for good."""
        config = self.attributes
        health = NodeHealth()
        if config.auto_reconnect:
            task_status.started()
            while True:
                lost = await self._until_lost(health)
                health.unhealthy(str(lost))
                self.log.warning("the gamepad is disconnected", reason=str(lost))
                await self._until_connected(lost)
        async with self.hardware.controls(config.identity(), grab=config.grab) as pad:
            self._connect(pad)
            task_status.started()
            await self._follow(pad)

    async def _until_lost(self, health: NodeHealth) -> HalError:
        """Publish events until the gamepad disconnects; return the error, at once if it is not connected."""
        config = self.attributes
        try:
            async with self.hardware.controls(config.identity(), grab=config.grab) as pad:
                self._connect(pad)
                health.healthy()
                await self._follow(pad)
        except HalError as error:
            if error.fault is not Fault.GONE:
                raise
            return error
        raise AssertionError("the stream of a gamepad's reports ended without an error")

    async def _until_connected(self, lost: HalError) -> None:
        """Wait until the gamepad is connected. Raises `lost` if hot-plug events are not available."""
        try:
            async with self.hardware.hotplug() as events:
                while not await self._is_connected():
                    await _appeared(events)
        except HalError as error:
            raise lost from error

    async def _is_connected(self) -> bool:
        """Return whether the gamepad is connected, or exists but cannot be opened."""
        try:
            async with self.hardware.controls(self.attributes.identity()):
                return True
        except HalError as error:
            return error.fault is not Fault.GONE

    async def _follow(self, pad: Controls) -> None:
        try:
            async for report in pad:
                time = datetime.fromtimestamp(report.time, UTC)
                for event, control, value in self._map.translate(report.changes):
                    self._listeners.publish(Event(time, event, control, value))
        finally:
            self._disconnect()

    def _connect(self, pad: Controls) -> None:
        self._identity = pad.identity
        self._map = GamepadMap(pad.keys, pad.axes, dead_zone=self.attributes.dead_zone)
        self._listeners.last.clear()
        self._map.translate(pad.state())
        now = datetime.now(UTC)
        for control, value in self._map.values().items():
            self._listeners.publish(Event(now, "Connect", control, value))
        self.log.info("the gamepad is connected", device=pad.identity.name, path=pad.identity.path)

    def _disconnect(self) -> None:
        self._identity = None
        now = datetime.now(UTC)
        for event, control, value in neutral(self._map.values()):
            self._listeners.publish(Event(now, event, control, value))
        for control in self._map.controls:
            self._listeners.publish(Event(now, "Disconnect", control, 0.0))

    async def get_controls(self, *, extra: Extra = None) -> Sequence[str]:
        """Return the controls of the current or last gamepad. UNAVAILABLE before the first connection."""
        await trio.lowlevel.checkpoint()
        if not self._map.controls:
            raise MachineError(
                f"{self.name}: {self.attributes.identity()} has not been connected yet",
                kind=ErrorKind.UNAVAILABLE,
                remedy="switch the gamepad on",
            )
        return self._map.controls

    async def get_events(self, *, extra: Extra = None) -> Sequence[Event]:
        """Return the last event of each control; Disconnect with 0 while the gamepad is disconnected."""
        await trio.lowlevel.checkpoint()
        return list(self._listeners.last.values())

    def stream_events(self, events: Sequence[Subscription], *, extra: Extra = None) -> AsyncGenerator[Event, None]:
        """Stream new events. The stream continues while the gamepad is disconnected."""
        controls = {*CONTROLS, *self._map.controls}
        for subscription in events:
            if subscription.control not in controls and self._map.controls:
                raise MachineError(
                    f"{self.name} has no control {subscription.control!r}",
                    kind=ErrorKind.INVALID,
                    remedy=f"use one of {', '.join(self._map.controls)}",
                )
        return self._listeners.stream(events)

    async def get_status(self) -> dict[str, Any]:
        """Return whether a gamepad is connected, and which."""
        await trio.lowlevel.checkpoint()
        pad = self._identity
        return {"connected": pad is not None, **({"device": pad.name, "path": pad.path} if pad is not None else {})}


async def _appeared(events: HotplugEvents) -> None:
    async for event in events:
        if event.action in APPEARED and event.subsystem in ("input", ""):
            return
