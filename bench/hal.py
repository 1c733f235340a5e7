"""Compare the hardware layer with the raw libraries: I2C register reads, GPIO toggles and edges, serial lines.

`python -m bench hal [--i2c BUS:ADDRESS[:REGISTER]] [--gpio CHIP:OUTPUT[:INPUT[:PULL]]] [--rounds N]`

Measurements without a device are reported and skipped. Without --i2c the bus is a stub that takes no time, the worst
case for our overhead: on a real bus both sides wait for the same bits. INPUT is a line connected to OUTPUT; with
gpio-sim, PULL is the file that acts as the wire, and OUTPUT is only toggled. Exits 1 if a budget is missed: an I2C
register read through the resource API takes at most 1.5 times as long as smbus2 in trio.to_thread, and a serial port
reads at least 100,000 lines/s.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping

Way = Callable[[int], Awaitable[None]]
"""Performs an operation `count` times."""


async def compare(ways: Mapping[str, Way], count: int, rounds: int) -> dict[str, float]:
    """Return the seconds per operation of each way: medians over rounds in alternating order."""
    for way in ways.values():
        await way(max(count // 10, 1))
    taken: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds):
        for name in list(ways) if turn % 2 == 0 else list(ways)[::-1]:
            begin = time.perf_counter()
            await ways[name](count)
            taken[name].append((time.perf_counter() - begin) / count)
    return {name: statistics.median(taken[name]) for name in ways}


def table(title: str, figures: Mapping[str, float], against: str) -> None:
    """Print microseconds and ratios."""
    print(title)
    for name, seconds in figures.items():
        print(f"  {name:44} {seconds * 1e6:9.1f} µs   {seconds / figures[against]:5.2f}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench hal", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--i2c", metavar="BUS:ADDRESS[:REGISTER]", default="")
    parser.add_argument("--gpio", metavar="CHIP:OUTPUT[:INPUT[:PULL]]", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=1000, help="operations per round")
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds per round of serial lines")
    options = parser.parse_args(argv)

    import structlog
    import trio

    from bench import hal_gpio, hal_i2c, hal_serial

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    met = trio.run(hal_i2c.measure, options.i2c, options.count, options.rounds)
    if options.gpio:
        trio.run(hal_gpio.measure, options.gpio, options.count, options.rounds)
    else:
        print("GPIO: not measured, no line given (--gpio)")
    return 0 if trio.run(hal_serial.measure, options.seconds, options.rounds) and met else 1


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
