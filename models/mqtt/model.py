"""Service `mqtt`: the machine at an MQTT broker, and in Home Assistant.

Topics, below `topic`: `status` (online or offline, kept by the broker), `<resource>/status`, `<resource>/state` (JSON)
and `<resource>/error` from the machine; `<resource>/set` to it. `<resource>/do_command` is answered by
`<resource>/do_command/answer`. A pin of a board has the same topics, below `<board>/<pin>`.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final

import trio

from engine import Actuator, Attributes, Context, GenericService, Resource, ResourceAccess, Started, model
from models.mqtt.attributes import MqttAttributes
from models.mqtt.connection import MqttConnection, MqttLogin, MqttMessage, mqtt_connection
from models.mqtt.entities import Device, Entity, entities_of, read_announcement
from models.mqtt.kinds import KINDS, Kind
from models.mqtt.own_commands import TOPIC as DO_COMMAND
from models.mqtt.own_commands import OwnCommands
from models.mqtt.pins import PublishedPin
from models.mqtt.using import used
from schema import ErrorKind, MachineError
from support import Worker
from support import version as program_version

READ_LIMIT_S: Final = 10.0  # for the state of a resource
STOP_LIMIT_S: Final = 3.0  # for stopping what the broker has commanded, when the connection ends
LONGEST_COMMAND: Final = 1000  # bytes
MOST_COMMANDS: Final = 10  # that wait for one resource; more are refused
ONLINE, OFFLINE = b"online", b"offline"


@dataclass
class _Shared:
    """A resource or a pin that is published, since this connection began. `name` is its name in topics."""

    name: str
    orders: trio.MemorySendChannel[str]
    waiting: trio.MemoryReceiveChannel[str]
    announced: dict[str, bytes] = field(default_factory=dict)  # documents by their topic
    status: bytes = b""
    problem: str = "not read yet"
    is_logged: bool = False  # the problem, in the log
    observed: trio.Event = field(default_factory=trio.Event)  # set to read the state before its time


@model("rdk:builtin:mqtt")
class MqttBridge(GenericService):
    """Publishes readings and states while a broker is connected; unhealthy while none is.

    A resource that is not ready is announced as offline, and does not disturb the others. When the connection ends,
    actuators that were commanded through it are stopped; switches and pins keep their state.
    """

    Config: ClassVar[type[Attributes]] = MqttAttributes
    attributes: MqttAttributes

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        topic = self.attributes.topic or f"machines/{socket.gethostname().partition('.')[0]}"
        self._device = Device(topic, program_version())
        pins = [PublishedPin(board, name) for board, names in self.attributes.pins.items() for name in names]
        self._pins = {pin.topic: pin for pin in pins}
        self._commanded = {*self.attributes.commands, *self._pins}
        self._shared: dict[str, _Shared] = {}
        self._moved: set[str] = set()  # actuators that were commanded and not stopped
        self._worker = Worker(f"connecting {self.name}")
        self._received = 0

    async def run(self, *, task_status: Started) -> None:
        """Be connected until cancelled; MachineError says why there is no connection."""
        config, topic = self.attributes, self._device.topic
        login = MqttLogin(
            config.client_id or self._device.id,
            config.username,
            config.password,
            config.ca,
            config.certificate,
            config.private_key,
        )
        self._own = OwnCommands(config.do_commands, self.others, self._moved.add, self.log)
        names = (*config.names(), *self._pins)
        self._shared = {name: _Shared(name, *trio.open_memory_channel[str](MOST_COMMANDS)) for name in names}
        will = (f"{topic}/status", OFFLINE)
        async with self._worker.opened():
            try:
                async with mqtt_connection(config.broker(), login, self._worker.run, will) as connection:
                    await self._serve(connection, task_status)
            finally:
                await self._stop_moved()

    async def _serve(self, connection: MqttConnection, task_status: Started) -> None:
        config, topic = self.attributes, self._device.topic
        patterns = [f"{topic}/+/set"] if config.commands else []
        patterns += [f"{topic}/{name}/set" for name in self._pins]
        patterns += [f"{topic}/+/{DO_COMMAND}"] if config.do_commands else []
        if config.discovery:
            patterns += [f"{config.discovery}/status", self._device.place(config.discovery, "+", "+")]
        if patterns:
            await connection.subscribe(*patterns)
        connection.publish(f"{topic}/status", ONLINE)
        async with trio.open_nursery() as nursery:
            for shared in self._shared.values():
                nursery.start_soon(self._publish, connection, shared)
                nursery.start_soon(self._obey, connection, shared)
            if config.do_commands:
                nursery.start_soon(self._own.run, connection, topic, partial(self._refuse, connection))
            task_status.started()
            while True:
                self._handle(connection, await connection.receive())

    # What the broker sends

    def _handle(self, connection: MqttConnection, message: MqttMessage) -> None:
        prefix, topic = self.attributes.discovery, message.topic
        if prefix and topic == f"{prefix}/status":
            if message.payload == ONLINE and not message.retained:  # Home Assistant has started
                for shared in self._shared.values():
                    shared.announced.clear()
                    shared.observed.set()
        elif prefix and topic.startswith(f"{prefix}/"):
            is_document = bool(message.payload) and message.retained and self._device.is_place(prefix, topic)
            if is_document and not self._is_ours(message.payload):
                connection.publish(topic, b"")  # of an earlier configuration
        elif message.retained:
            self.log.warning(
                "a retained command was ignored, because it would be repeated at each connection", topic=topic
            )
        elif topic.endswith(f"/{DO_COMMAND}"):
            self._received += 1
            name = topic.removeprefix(f"{self._device.topic}/").removesuffix(f"/{DO_COMMAND}")
            try:
                self._own.put(name, message.payload)
            except MachineError as error:
                self._refuse(connection, name if name in self.attributes.do_commands else "", error)
        else:
            self._order(connection, topic.removeprefix(f"{self._device.topic}/").removesuffix("/set"), message.payload)

    def _is_ours(self, payload: bytes) -> bool:
        """Whether a document announces a resource that is still published; that of another program is left alone."""
        announced = read_announcement(payload)
        if announced is None:
            return True
        base, has_commands = announced
        name = base.removeprefix(f"{self._device.topic}/")
        return name in self._shared and (not has_commands or name in self._commanded)

    def _order(self, connection: MqttConnection, name: str, payload: bytes) -> None:
        self._received += 1
        shared = self._shared.get(name)
        reason = ""
        if shared is None or name not in self._commanded:
            reason = f"{name!r} is not among `commands` or `pins` of {self.name.name}"
        elif len(payload) > LONGEST_COMMAND:
            reason = f"the command has {len(payload)} bytes, and {LONGEST_COMMAND} are allowed"
        else:
            try:
                shared.orders.send_nowait(payload.decode(errors="replace"))
            except trio.WouldBlock:
                reason = f"{MOST_COMMANDS} commands are waiting already"
        if reason:
            self._refuse(connection, name if shared else "", MachineError(reason, kind=ErrorKind.PRECONDITION))

    def _refuse(self, connection: MqttConnection, name: str, error: MachineError) -> None:
        self.log.warning("a command from the broker was refused", resource=name, reason=str(error))
        if name:
            connection.publish(f"{self._device.topic}/{name}/error", str(error).encode(), retain=False)

    async def _obey(self, connection: MqttConnection, shared: _Shared) -> None:
        async for text in shared.waiting:
            try:
                await self._command(shared.name, text)
            except MachineError as error:
                self._refuse(connection, shared.name, error)
            shared.observed.set()

    async def _command(self, name: str, text: str) -> None:
        async with self._use(name) as (kind, resource):
            if kind.obey is None:
                raise MachineError(f"a {kind.base.API.subtype} has no commands", kind=ErrorKind.UNSUPPORTED)
            if isinstance(resource, Actuator):
                self._moved.add(name)
            await kind.obey(resource, text)

    async def _stop_moved(self) -> None:
        """Stop the actuators that were commanded, each within STOP_LIMIT_S, although this task may be cancelled."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                for name in self._moved:
                    nursery.start_soon(self._stop, name)
        self._moved.clear()

    async def _stop(self, name: str) -> None:
        with trio.move_on_after(STOP_LIMIT_S) as scope:
            try:
                async with self._use(name) as (_, resource):
                    if isinstance(resource, Actuator):
                        await resource.stop()
            except MachineError as error:  # it stops when it ends
                self.log.warning("not stopped after the connection has ended", resource=name, reason=str(error))
        if scope.cancelled_caught:
            self.log.error("not stopped after the connection has ended: it does not answer", resource=name)

    # What is published

    async def _publish(self, connection: MqttConnection, shared: _Shared) -> None:
        while True:
            shared.observed = trio.Event()
            await self._publish_once(connection, shared)
            with trio.move_on_after(self.attributes.interval_s):
                await shared.observed.wait()

    async def _publish_once(self, connection: MqttConnection, shared: _Shared) -> None:
        base = f"{self._device.topic}/{shared.name}"
        try:
            with trio.move_on_after(READ_LIMIT_S) as scope:
                async with self._use(shared.name) as (kind, resource):
                    observed = await kind.observe(resource)
            if scope.cancelled_caught:
                raise MachineError(f"{shared.name} has not answered for {READ_LIMIT_S:g} s", kind=ErrorKind.TIMEOUT)
        except MachineError as error:
            self._set_status(connection, shared, OFFLINE, str(error))
            if shared.name in self._pins and error.kind is not ErrorKind.UNAVAILABLE and not shared.is_logged:
                shared.is_logged = True  # once: it is read again at each interval
                self.log.warning("a pin cannot be published", pin=shared.name, reason=str(error))
            return
        shared.is_logged = False
        controls = observed.controls if shared.name in self._commanded else ()
        shown = {entity.key for entity in controls}
        entities = [entity for entity in entities_of(observed.state) if entity.key not in shown]
        for entity in (*controls, *entities):
            self._announce(connection, shared, entity)
        if observed.state:
            connection.publish(f"{base}/state", json.dumps(observed.state, ensure_ascii=False).encode(errors="replace"))
        self._set_status(connection, shared, ONLINE, "")

    def _announce(self, connection: MqttConnection, shared: _Shared, entity: Entity) -> None:
        prefix = self.attributes.discovery
        if not prefix:
            return
        expire_s = int(3 * self.attributes.interval_s + READ_LIMIT_S)
        topic, document = self._device.announced(prefix, shared.name, entity, expire_s)
        if shared.announced.get(topic) != document and connection.publish(topic, document):
            shared.announced[topic] = document

    def _set_status(self, connection: MqttConnection, shared: _Shared, status: bytes, problem: str) -> None:
        shared.problem = problem
        if shared.status != status and connection.publish(f"{self._device.topic}/{shared.name}/status", status):
            shared.status = status

    @asynccontextmanager
    async def _use(self, name: str) -> AsyncIterator[tuple[Kind, Resource]]:
        """Yield a resource. MachineError if none is ready, or for any error of its driver."""
        kind, door = self._find(name)
        async with used(door, name, self.log) as resource:
            yield kind, resource

    def _find(self, name: str) -> tuple[Kind, ResourceAccess]:
        """Return the resource with a short name, for a pin that of its board; MachineError if none is ready."""
        pin = self._pins.get(name)
        if pin is not None:
            name = pin.board
        for kind in KINDS if pin is None else (pin.kind(),):
            for full, door in self.others(kind.base.API).items():
                if name == full.short:
                    return kind, door
        apis = ", ".join(kind.base.API.subtype for kind in KINDS)
        raise MachineError(
            f"no resource named {name!r} is ready",
            kind=ErrorKind.UNAVAILABLE,
            remedy=f"check its name and its state; it must be a {'board' if pin else apis}",
        )

    async def get_status(self) -> Mapping[str, Any]:
        """Return the topic, the number of commands that arrived, and for each resource what is wrong."""
        resources = {name: shared.problem or "published" for name, shared in self._shared.items()}
        return {"topic": self._device.topic, "commands": self._received, "resources": resources}
