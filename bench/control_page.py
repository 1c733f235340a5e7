"""From a hand on the page Control to the motor: `python -m bench control_page [--times 100]`.

A page in Chromium drives the rover of examples/bench.json: on the machine's own page by gRPC-Web and by WebRTC, and in
the cloud by WebRTC and through the cloud.
Each time is from the event of the pointer until another client sees the motor run or rest; that client asks again as
soon as it has an answer. The peer is a Python program that calls SetPower over gRPC, seen by the same client. All are
processes on loopback. Also: pictures per second of the camera, and processor time of the browser and the server with
all cards live; the own page also with 30 cards, all of them in sight.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import trio

from schema.names import API
from tests.e2e.browser.page import Page
from tests.e2e.browser.test_control import PAD, Rover, bench
from tests.e2e.browser.test_control_cloud import joined

WAYS = ("direct", "own", "own, 30 cards", "webrtc", "cloud")
CARDS = 30
SHOWN = "document.querySelectorAll('[data-card]').length"
BASE = API.parse("rdk:component:base")
LIMIT = 5.0  # seconds; longer than the dead man's switch takes
SECONDS = 10.0  # in which pictures and processor time are counted
PLACE = f"""
(() => {{
  const pad = document.querySelector("{PAD}");
  pad.scrollIntoView({{ block: "center", behavior: "instant" }});
  const box = pad.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}})()
"""
PICTURES = """
new Promise((resolve) => {
  const view = document.querySelector('[data-card=camera] video, [data-card=camera] canvas');
  let count = 0;
  const end = performance.now() + %d;
  const video = () => { count += 1; if (performance.now() < end) view.requestVideoFrameCallback(video); };
  if (view.tagName === 'VIDEO') view.requestVideoFrameCallback(video);
  else {
    const context = view.getContext('2d'), draw = context.drawImage;
    context.drawImage = function (...values) { count += 1; return draw.apply(this, values); };
  }
  setTimeout(() => resolve(count), %d);
})
"""


@asynccontextmanager
async def opened(way: str, folder: Path) -> AsyncIterator[tuple[Page, Rover]]:
    """Yield a page that controls the rover in one way, and the client that watches it."""
    if way in ("direct", "own"):
        async with bench(folder, webrtc=way == "own") as (_, page, rover):
            yield page, rover
    elif way == "own, 30 cards":
        async with bench(folder, motors=CARDS) as (_, page, rover):
            await page.size(2560, 2400)  # all in sight, and therefore live
            await page.until(f"{SHOWN} > {CARDS}")
            for _ in range(await page.evaluate(SHOWN) - CARDS):
                await page.evaluate("[...document.querySelectorAll('.menu button:last-of-type')].at(-1).click()")
            await page.until(f"{SHOWN} === {CARDS}")
            yield page, rover
    else:
        async with joined(folder, webrtc=way == "webrtc") as (_, page, rover):
            yield page, rover


async def seen(rover: Rover, runs: bool) -> bool:
    """Wait until the left motor runs or rests, without a pause between questions; return whether it did in time."""
    with trio.move_on_after(LIMIT):
        while (await rover.power("left") != 0) is not runs:
            await trio.lowlevel.checkpoint()
        return True
    return False


async def of_page(page: Page, rover: Rover, times: int) -> tuple[list[float], list[float]]:
    """Return milliseconds from a movement of the pointer to the motor, and from its release to rest.

    A hold that did not move the motor, because the busy computer missed its deadline, is reported and tried again.
    """
    starts, stops = [], []
    while len(stops) < times:
        x, y = await page.evaluate(PLACE)  # cards move while others fill
        await page.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        begin = trio.current_time()
        await page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y - 60, button="left", buttons=1)
        moved, took = await seen(rover, runs=True), trio.current_time() - begin
        begin = trio.current_time()
        await page.release()
        rested = await seen(rover, runs=False)
        if not moved or not rested:
            print(f"no answer within {LIMIT:g} s: moved {moved}, rested {rested}", file=sys.stderr, flush=True)
            continue
        starts.append(took * 1000)
        stops.append((trio.current_time() - begin) * 1000)
    return starts, stops


async def of_program(rover: Rover, times: int) -> tuple[list[float], list[float]]:
    """Return the same times for a Python program that calls the machine over gRPC."""
    starts, stops = [], []
    zero = {"x": 0.0, "y": 0.0, "z": 0.0}
    for _ in range(times):
        begin = trio.current_time()
        await rover.client.call(BASE, "rover", "set_power", linear={**zero, "y": 0.4}, angular=zero)
        await seen(rover, runs=True)
        starts.append((trio.current_time() - begin) * 1000)
        begin = trio.current_time()
        await rover.client.call(BASE, "rover", "stop")
        await seen(rover, runs=False)
        stops.append((trio.current_time() - begin) * 1000)
    return starts, stops


def processor(match: Callable[[str], bool]) -> float:
    """Return the processor seconds of all children of this process whose command matches."""
    children = psutil.Process().children(recursive=True)
    return sum(sum(child.cpu_times()[:2]) for child in children if match(" ".join(child.cmdline())))


def row(name: str, starts: Sequence[float], stops: Sequence[float], *more: str) -> str:
    """Return a row of the table."""

    def figures(values: Sequence[float]) -> str:
        return f"{statistics.median(values):.1f} | {statistics.quantiles(values, n=100)[98]:.1f}"

    return f"| {name} | {figures(starts)} | {figures(stops)} | {' | '.join(more or ('', '', ''))} |"


async def run(times: int) -> None:
    """Print the table."""
    cores = "browser, cores | server, cores"
    print(f"| way | to the motor, ms: 50 % | 99 % | to rest, ms: 50 % | 99 % | pictures/s | {cores} |")
    print("|---" * 8 + "|")
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            async with opened(way, Path(folder)) as (page, rover):
                await page.until(
                    "document.querySelector('[data-card=camera] :is([data-picture=video], [data-picture=pictures])')"
                )
                if way == "direct":
                    print(row("a Python program, gRPC", *await of_program(rover, times)), flush=True)
                starts, stops = await of_page(page, rover, times)
                names = (
                    (lambda line: "chrom" in line),
                    (lambda line: "runtime.server" in line or "machine-server" in line),
                )
                before = [processor(name) for name in names]
                pictures = await page.evaluate(PICTURES % (SECONDS * 1000, SECONDS * 1000))
                used = [f"{(processor(name) - start) / SECONDS:.2f}" for name, start in zip(names, before, strict=True)]
                print(row(way, starts, stops, f"{pictures / SECONDS:.1f}", *used), flush=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100)
    trio.run(run, parser.parse_args(argv).times)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
