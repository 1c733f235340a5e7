"""The unmodified Python SDK: a line of input is a command with arguments, a line of output a result and an error.

The methods of `Commands` are the commands; `tests.netns.webrtc.sdk` controls this program.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from viam.components.generic import Generic
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions


class Commands:
    """The commands, with one connection at a time."""

    def __init__(self) -> None:
        self.robot: Any = None
        self.watching: asyncio.Task[None] | None = None
        self.answered: list[tuple[float, float]] = []

    async def connect(self, host: str, key: list[str], **options: Any) -> dict[str, Any]:
        """Connect by the default dial, and return the seconds until the resources are known.

        The SDK checks the connection each `check` seconds; by default never, and at its own intervals with None.
        """
        begin = time.monotonic()
        self.robot = await _connect(host, key, **options)
        return {"seconds": round(time.monotonic() - begin, 3)}

    async def churn(self, host: str, key: list[str], count: int) -> None:
        """Connect, read a sensor and close, `count` times."""
        for _ in range(count):
            robot = await _connect(host, key)
            await Sensor.from_robot(robot, "a").get_readings()
            await robot.close()

    async def read(self, count: int, at_once: int = 1, resource: str = "a") -> dict[str, float]:
        """Read a sensor `count` times and return the figures."""
        sensor = Sensor.from_robot(self.robot, resource)
        assert await sensor.get_readings() == {"a": 1.0, "b": 2.0, "c": 3.0}
        times: list[float] = []

        async def some(number: int) -> None:
            for _ in range(number):
                begin = time.perf_counter()
                await sensor.get_readings()
                times.append(time.perf_counter() - begin)

        begin = time.perf_counter()
        await asyncio.gather(*(some(count // at_once) for _ in range(at_once)))
        seconds = time.perf_counter() - begin
        times.sort()
        return {
            "p50": times[len(times) // 2],
            "p99": times[len(times) * 99 // 100],
            "rate": len(times) / seconds,
        }

    async def watch(self) -> None:
        """Read a sensor again and again in the background, each time for 2 s at most.

        It is the same client of the sensor all the time, as programs use it.
        """
        sensor = Sensor.from_robot(self.robot, "a")

        async def run() -> None:
            while True:
                begin = time.monotonic()
                try:
                    await asyncio.wait_for(sensor.get_readings(), 2)
                    self.answered.append((begin, time.monotonic()))
                except Exception as error:
                    print(repr(error), file=sys.stderr, flush=True)
                await asyncio.sleep(0.02)

        self.answered = []
        self.watching = asyncio.create_task(run())

    async def outage(self) -> dict[str, Any]:
        """Return the calls answered since `watch`, the longest time without one, and how long ago the last one was."""
        ends = [end for _, end in self.answered]
        gaps = [later - earlier for earlier, later in pairwise(ends)]
        return {
            "answered": len(ends),
            "longest": max(gaps, default=0.0),
            "last": time.monotonic() - ends[-1] if ends else None,
        }

    async def spin(self, motor: str) -> bool:
        """Start a motor, whose session ends it without this program."""
        await Motor.from_robot(self.robot, motor).set_power(0.5)
        return await self.powered(motor)

    async def powered(self, motor: str) -> bool:
        """Return whether a motor has power."""
        return (await Motor.from_robot(self.robot, motor).is_powered())[0]

    async def echo(self, size: int, count: int, resource: str = "echo") -> dict[str, float]:
        """Have `size` bytes returned by a generic component `count` times, and return the bytes per second."""
        generic = Generic.from_robot(self.robot, resource)
        text = "x" * size
        await generic.do_command({"text": text})
        begin = time.perf_counter()
        for _ in range(count):
            await generic.do_command({"text": text})
        return {"rate": size * count / (time.perf_counter() - begin)}

    async def close(self) -> None:
        if self.watching is not None:
            self.watching.cancel()
        await self.robot.close()


async def _connect(host: str, key: list[str], check: int | None = 0, **options: Any) -> RobotClient:
    dial = DialOptions.with_api_key(key[1], key[0])
    for name, value in {"insecure": True, **options}.items():
        setattr(dial, name, value)
    chosen = RobotClient.Options(dial_options=dial, refresh_interval=0)
    if check is not None:
        chosen.check_connection_interval = chosen.attempt_reconnect_interval = check
    return await RobotClient.at_address(host, chosen)


async def _main() -> None:
    commands = Commands()
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the SDK prints goes to the log
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, arguments = json.loads(line)
        command: Callable[..., Awaitable[Any]] = getattr(commands, name)
        try:
            result = [await command(**arguments), None]
        except Exception as error:
            result = [None, repr(error)]
        print(json.dumps(result), file=results, flush=True)


if __name__ == "__main__":
    asyncio.run(_main())
