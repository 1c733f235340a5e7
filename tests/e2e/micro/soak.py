"""Lives through some hours of a micro server in memory, on MicroPython: `soak.py HOURS`.

Clients come and go, call, cancel and attack; readings are captured, logs are written, and the configuration changes.
The heap in use is printed after the first hour and after each further one.
"""

import gc
import sys

from micro.engine.calls import Calls
from micro.engine.machine import Machine
from micro.hosts.fake import FakePort
from micro.hosts.main import sha256
from micro.wire.bounds import for_heap
from micro.wire.faults import CallFailure
from micro.wire.http2 import Budget, Connection

STEP_MS = 20000
SENSOR = "/viam.component.sensor.v1.SensorService/GetReadings"
POWER = "/viam.component.motor.v1.MotorService/SetPower"
NAME = b"\x0a\x01s"
MOTOR = b"\x0a\x01m\x11\x00\x00\x00\x00\x00\x00\xe0\x3f"


class SimulatedHost(FakePort):
    """A host whose clock is set by the test."""

    time = 1
    count = 0

    def now(self) -> int:
        return self.time

    def unix(self) -> "tuple[int, int]":
        return 1800000000 + self.time // 1000, 0

    def random(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")

    def free(self) -> int:
        gc.collect()
        return gc.mem_free()  # type: ignore[attr-defined]

    async def sleep(self, ms: int) -> None:
        raise AssertionError


class Visitor:
    """A client, and its connection."""

    answered = 0

    def __init__(self, calls: Calls, bounds: "object", budget: Budget, now: int) -> None:
        self.calls = calls
        self.client = Connection(bounds, budget, now, client=True)
        self.server = Connection(bounds, budget, now)
        self.server.trusted = True

    def carry(self, now: int) -> None:
        for sender, receiver in ((self.client, self.server), (self.server, self.client)):
            while True:
                data = sender.output()
                if not data:
                    break
                receiver.receive(data, now)

    def call(self, path: str, message: bytes, now: int) -> None:
        self.client.call(path, "x", message)
        self.carry(now)
        while self.server.ready:
            stream = self.server.ready.pop()
            try:
                self.server.answer(stream, self.calls.call(stream.headers, stream.body))
            except CallFailure as failure:
                self.server.fail(stream, failure.status, failure.text)
        self.carry(now)
        for stream in self.client.ready:
            self.answered += stream.failure is None
        self.client.ready.clear()


def document(number: int) -> "dict[str, object]":
    capture = {"method": "Readings", "capture_frequency_hz": 0.1}
    data = [{"type": "data_manager", "attributes": {"capture_methods": [capture]}}]
    sensor = {"name": "s", "api": "rdk:component:sensor", "model": "fake", "service_configs": data}
    return {"components": [sensor, {"name": "m", "api": "rdk:component:motor", "model": "fake"}] * (1 + number % 2)}


def run(coroutine: "object") -> None:
    try:
        coroutine.send(None)
    except StopIteration:
        pass


def main() -> None:
    host = SimulatedHost()
    bounds = for_heap(host.free())
    machine = Machine(host, sha256, bounds)
    calls = Calls(machine)
    budget = Budget(bounds.held)
    visitors: list[Visitor] = []
    answered = 0
    steps = int(sys.argv[1]) * 3600000 // STEP_MS
    for step in range(steps):
        host.time += STEP_MS
        if step % 180 == 0:
            machine.apply(document(step // 180), str(step))
        if step % 7 == 0:
            visitors.append(Visitor(calls, bounds, budget, host.time))
            if len(visitors) > 2:
                visitor = visitors.pop(0)
                visitor.server.fail_all()
                answered += visitor.answered
        for visitor in visitors:
            visitor.call(SENSOR, NAME, host.time)
            visitor.call(POWER, MOTOR, host.time)
            visitor.call("/nothing", b"", host.time)
            visitor.server.tick(host.time)
        if step % 50 == 0:
            visitors[-1].server.receive(b"\x00\x00\x04\x01\x04\x00\x00\x00\x01\xff\xff\xff\xff", host.time)
        machine.tick()
        run(machine.capture_due())
        if step % 3 == 0:
            machine.logs.take(10)
            machine.ring.remove(machine.ring.batch())
        if (step + 1) % 180 == 0:
            gc.collect()
            print(gc.mem_alloc(), budget.left, answered)  # type: ignore[attr-defined]


main()
