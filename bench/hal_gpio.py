"""Compare gpiod with our ports: toggling an output, and the time from an edge until a waiting task receives it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack

import gpiod
from gpiod.line import Direction, Edge, Value

from bench.hal import Way, compare, table
from hal.linux.gpio.chips import find_chip
from hal.linux.hardware import LinuxHardware
from hal.ports.digital import InputSettings, Line, OutputSettings


async def measure(lines: str, count: int, rounds: int) -> None:
    chip, *rest = lines.split(":")
    output, source, pull = (*rest, "", "")[:3]
    await _toggles(chip, int(output), count, rounds)
    if source:
        await _edges(chip, int(output), int(source), pull, count, rounds)
    else:
        print("GPIO edges: not measured, no input wired to the output (--gpio CHIP:OUTPUT:INPUT)")


async def _toggles(chip: str, output: int, count: int, rounds: int) -> None:
    async def raw(count: int) -> None:
        settings = gpiod.LineSettings(direction=Direction.OUTPUT)
        with gpiod.request_lines(str(find_chip(chip).path), config={output: settings}) as request:
            for _ in range(count):
                request.set_value(output, Value.ACTIVE)
                request.set_value(output, Value.INACTIVE)

    async def port(count: int) -> None:
        async with LinuxHardware().digital_output(Line(chip, output), OutputSettings()) as line:
            for _ in range(count):
                line.write(True)
                line.write(False)

    table("GPIO, an output high and low", await compare({"gpiod": raw, "the port": port}, count, rounds), "gpiod")


async def _edges(chip: str, output: int, source: int, pull: str, count: int, rounds: int) -> None:
    """Measure round trips: set the level and wait for the resulting edge."""
    path = str(find_chip(chip).path)
    async with AsyncExitStack() as stack:
        if pull:
            fd = os.open(pull, os.O_WRONLY)
            stack.callback(os.close, fd)

            def drive(high: bool) -> None:
                os.pwrite(fd, b"pull-up\n" if high else b"pull-down\n", 0)
        else:
            line = await stack.enter_async_context(LinuxHardware().digital_output(Line(chip, output), OutputSettings()))
            drive = line.write
        ways = {"gpiod, which blocks the loop": _raw(path, source, drive), "the port": _port(chip, source, drive)}
        table(
            "GPIO, from setting a level to the edge", await compare(ways, count, rounds), "gpiod, which blocks the loop"
        )


def _raw(path: str, source: int, drive: Callable[[bool], None]) -> Way:
    async def run(count: int) -> None:
        drive(False)
        settings = gpiod.LineSettings(direction=Direction.INPUT, edge_detection=Edge.BOTH)
        with gpiod.request_lines(path, config={source: settings}) as request:
            for turn in range(count):
                drive(turn % 2 == 0)
                request.wait_edge_events()
                assert len(request.read_edge_events()) == 1

    return run


def _port(chip: str, source: int, drive: Callable[[bool], None]) -> Way:
    async def run(count: int) -> None:
        drive(False)
        async with (
            LinuxHardware().digital_input(Line(chip, source), InputSettings()) as line,
            line.edges() as edges,
        ):
            waiting = aiter(edges)
            for turn in range(count):
                drive(turn % 2 == 0)
                assert (await anext(waiting)).high == (turn % 2 == 0)

    return run
