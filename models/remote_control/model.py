"""The service `base_remote_control`: a base that an input controller drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Final

import trio

from engine import (
    Attributes,
    Base,
    BaseRemoteControl,
    Extra,
    InputController,
    Started,
    Subscription,
    model,
)
from models.common.motion import run_shielded
from models.remote_control.attributes import RemoteControlConfig
from models.remote_control.modes import MODES, Motion, all_at_rest, motion_of, value_of
from schema import ErrorKind, MachineError, Vector3

COMMAND_LIMIT: Final = 2.0  # seconds in which a base must take a command, else it is stopped


@model("rdk:builtin:builtin")
class BuiltinRemoteControl(BaseRemoteControl):
    """Commands the base at each event of the controls of its mode, by the newest state of all of them.

    The base stops when a control disconnects, when the stream of events ends, when the service stops or is replaced,
    and when a command fails. After `stop`, a failure or a disconnection, the base moves again only after all controls
    have been at rest.
    """

    Config: ClassVar[type[Attributes]] = RemoteControlConfig

    async def run(self, *, task_status: Started) -> None:
        """Drive until cancelled. PRECONDITION if the input controller lacks a control of the mode."""
        config: RemoteControlConfig = self.attributes
        self._config = config
        self._base = self.dependency(Base, config.base)
        self._controller = self.dependency(InputController, config.input_controller)
        self._values = dict.fromkeys(MODES[config.control_mode], 0.0)
        self._driven = Motion()  # the last command
        self._must_rest = False  # whether controls have to be at rest before the base moves again
        self._problem = ""
        self._changed = trio.Event()
        self._command = trio.CancelScope()  # of the command in progress
        self._turn = trio.Lock()  # of commands and stops
        await self._check_controls()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._drive)
                nursery.start_soon(self._follow)
                task_status.started()
        finally:
            await run_shielded(self._base.stop)

    async def _check_controls(self) -> None:
        try:
            controls = await self._controller.get_controls()
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:  # a gamepad that has not been connected yet
                raise
            return
        missing = [control for control in self._values if control not in controls]
        if missing:
            usable = [mode for mode, needed in MODES.items() if set(needed) <= set(controls)]
            raise MachineError(
                f"{self._config.input_controller} has no {', '.join(missing)}, which {self._config.control_mode} needs",
                kind=ErrorKind.PRECONDITION,
                remedy=f"use a control_mode for which it has the controls: {', '.join(usable) or 'there is none'}",
            )

    async def _follow(self) -> None:
        subscriptions = [Subscription(control, ("AllEvents",)) for control in self._values]
        async with aclosing(self._controller.stream_events(subscriptions)) as events:
            async for event in events:
                if event.control not in self._values or event.event == "PositionChangeRel":
                    continue
                self._values[event.control] = value_of(event.event, event.value)
                if event.event == "Disconnect" and not self._driven.rest:
                    self._hold("the input controller is disconnected")
                self._must_rest = self._must_rest and not all_at_rest(self._values)
                self._changed.set()
        raise MachineError(
            f"the events of {self._config.input_controller} have ended",
            kind=ErrorKind.UNAVAILABLE,
            remedy="its state says why",
        )

    def _hold(self, problem: str) -> None:
        """Let nothing move until the controls have been at rest, and end the command in progress."""
        self._must_rest = not all_at_rest(self._values)
        self._problem = problem or self._problem
        self._command.cancel()
        self._changed.set()

    def _aim(self) -> Motion:
        return Motion() if self._must_rest else motion_of(self._config.control_mode, self._values)

    async def _drive(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            async with self._turn:
                aim = self._aim()
                if aim == self._driven:
                    continue
                try:
                    with trio.fail_after(COMMAND_LIMIT), trio.CancelScope() as self._command:
                        await self._move(aim)
                except (MachineError, NotImplementedError, trio.TooSlowError) as error:
                    problem = str(error) or f"the base has not taken a command within {COMMAND_LIMIT:g} s"
                    self.log.error("the base is stopped because a command failed", error=problem)
                    self._hold(problem)
                    await self._halt()
                else:
                    if self._command.cancelled_caught:
                        await self._halt()
                    else:
                        self._driven, self._problem = aim, self._problem if aim.rest else ""

    async def _halt(self) -> None:
        with trio.move_on_after(COMMAND_LIMIT) as limit:
            await self._base.stop()
        if limit.cancelled_caught:
            raise MachineError(
                f"{self._config.base} has not stopped within {COMMAND_LIMIT:g} s",
                kind=ErrorKind.TIMEOUT,
                remedy="switch its power off, and check what drives it",
            )
        self._driven = Motion()

    async def _move(self, aim: Motion) -> None:
        if aim.rest:
            await self._halt()
            return
        config, linear = self._config, aim.linear
        if not config.max_linear_mm_per_sec:
            await self._base.set_power(linear, Vector3(0.0, 0.0, aim.turn))
            return
        speed = config.max_linear_mm_per_sec
        await self._base.set_velocity(
            Vector3(speed * linear.x, speed * linear.y, speed * linear.z),
            Vector3(0.0, 0.0, config.max_angular_degs_per_sec * aim.turn),
        )

    async def controller_inputs(self, *, extra: Extra = None) -> Sequence[str]:
        """Return the controls of the mode."""
        await trio.lowlevel.checkpoint()
        return tuple(self._values)

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop the base; it moves again only after all controls have been at rest."""
        self._must_rest = not all_at_rest(self._values)
        self._command.cancel()
        self._changed.set()
        async with self._turn:
            await self._halt()

    async def is_moving(self) -> bool:
        """Return whether the controls move the base."""
        await trio.lowlevel.checkpoint()
        return not self._driven.rest

    async def get_status(self) -> Mapping[str, Any]:
        """Return the mode, the values of the controls, and why the base does not move although a control is held."""
        await trio.lowlevel.checkpoint()
        status: dict[str, Any] = {
            "control_mode": self._config.control_mode,
            "controls": dict(self._values),
            "moving": not self._driven.rest,
            "waits_for_controls_at_rest": self._must_rest,
        }
        return status | ({"problem": self._problem} if self._problem else {})
