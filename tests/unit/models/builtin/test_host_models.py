"""Models of the host: its own facts, programs, image files. Real files, processes and time."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from engine.resource import Unsupported
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench

SENSOR = "rdk:component:sensor"


def tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


async def test_the_host_is_read_from_its_own_files(bench: Bench, tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "proc/stat": "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n",
            "proc/loadavg": "0.50 0.25 0.10 1/234 5678\n",
            "proc/meminfo": "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\nSwapFree: 0 kB\n",
            "proc/uptime": "1234.56 99.0\n",
            "proc/net/dev": "head\nhead\n lo: 9 0 0 0 0 0 0 0 9 0\n"
            " eth0: 100 0 0 0 0 0 0 0 200 0\nwlan0:1 0 0 0 0 0 0 0 2 0\n",
            "sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
            "sys/class/thermal/thermal_zone0/temp": "48123\n",
            "sys/class/thermal/thermal_zone1/temp": "broken\n",
        },
    )
    host = await bench.add("sensor", "host", {"root": str(tmp_path)}, model="host")
    readings = await host.get_readings()
    assert "cpu_pct" not in readings  # no earlier sample to compare with
    assert readings["load_5m"] == 0.25
    assert readings["memory_total_bytes"] == 1_024_000
    assert readings["memory_used_pct"] == 75.0
    assert readings["uptime_s"] == 1234.56
    assert (readings["network_received_bytes"], readings["network_sent_bytes"]) == (101, 202)
    assert readings["temperature_cpu-thermal_c"] == 48.123
    assert 0 <= readings["disk_used_pct"] <= 100
    tree(tmp_path, {"proc/stat": "cpu  175 0 100 725 100 0 0 0 0 0\n"})
    host._since -= 1  # as if a second had passed
    assert (await host.get_readings())["cpu_pct"] == 75.0


async def test_a_host_without_those_files_tells_what_it_can(bench: Bench, tmp_path: Path) -> None:
    host = await bench.add("sensor", "host", {"root": str(tmp_path), "disk_path": str(tmp_path / "no")}, model="host")
    assert list(await host.get_readings()) == ["cpu_count"]
    memory = await bench.add("sensor", "memory", {"groups": ["memory"]}, model="host")
    assert set(await memory.get_readings()) >= {"memory_total_bytes"}


def program(text: str, **more: Any) -> dict[str, Any]:
    return {"argv": [sys.executable, "-c", text], **more}


@pytest.mark.parametrize(
    ("attributes", "readings"),
    [
        ({"argv": ["/bin/echo", '{"a": 1.5, "b": [true]}']}, {"a": 1.5, "b": [True]}),
        ({"argv": ["/bin/echo", "x=1, y=2.5 name='a b' ok=true"], "format": "key_value"},
         {"x": 1, "y": 2.5, "name": "a b", "ok": True}),
        ({"argv": ["/bin/echo", "21.5"], "format": "number"}, {"value": 21.5}),
        ({"argv": ["/bin/echo", "1;two;3.0"], "format": "csv", "separator": ";"},
         {"column_1": 1, "column_2": "two", "column_3": 3.0}),
        ({"argv": ["/bin/echo", "temp=48.3'C"], "format": "regex", "pattern": r"temp=(?P<temp_c>[0-9.]+)"},
         {"temp_c": 48.3}),
        ({"argv": ["echo $1-$V", "one"], "shell": True, "env": {"V": "two"}, "format": "text"}, {"value": "one-two"}),
        ({"argv": ["pwd"], "cwd": "/", "format": "text"}, {"value": "/"}),
    ],
)  # fmt: skip
async def test_readings_are_what_a_program_prints(
    bench: Bench, attributes: dict[str, Any], readings: dict[str, Any]
) -> None:
    sensor = await bench.add("sensor", "it", attributes, model="command")
    assert await sensor.get_readings() == readings


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"argv": ["/no/such/program"]}, "cannot be run"),
        ({"argv": ["echo nonsense >&2; exit 3"], "shell": True}, "exited with 3: nonsense"),
        ({"argv": ["kill -9 $$"], "shell": True}, "SIGKILL"),
        ({"argv": ["/bin/echo", "hello"]}, "'hello' is not JSON"),
        ({"argv": ["/bin/echo", "hello"], "format": "regex", "pattern": "(?P<x>[0-9]+)"}, "pattern"),
        ({"argv": ["yes"], "max_output_bytes": 1000}, "more than 1000 bytes"),
    ],
)
async def test_errors_are_reported(bench: Bench, attributes: dict[str, Any], words: str) -> None:
    sensor = await bench.add("sensor", "it", attributes, model="command")
    with trio.fail_after(30):
        with pytest.raises(MachineError, match=words) as caught:
            await sensor.get_readings()
    assert caught.value.kind is ErrorKind.UNAVAILABLE


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def gone(pid: int) -> None:
    """Return when the process has been reaped; the test's time limit bounds the wait."""
    with trio.fail_after(30):
        while alive(pid):
            await trio.lowlevel.checkpoint()


async def test_cancelling_kills_the_program_and_its_children(bench: Bench, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pids")
    fd = os.open(tmp_path / "pids", os.O_RDWR | os.O_NONBLOCK)
    script = f"trap '' TERM; sleep 1000 & echo $$ $! > {tmp_path}/pids; wait; wait"
    sensor = await bench.add("sensor", "it", {"argv": [script], "shell": True}, model="command")
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sensor.get_readings)
            with trio.fail_after(30):
                await trio.lowlevel.wait_readable(fd)
            pids = [int(word) for word in os.read(fd, 100).split()]
            assert all(alive(pid) for pid in pids)
            nursery.cancel_scope.cancel()
    finally:
        os.close(fd)
    for pid in pids:
        await gone(pid)


async def test_a_program_that_leaves_children_does_not_hold_the_call(bench: Bench) -> None:
    sensor = await bench.add("sensor", "it", {"argv": ["sleep 1000 & echo $!"], "shell": True, "format": "number"},
                             model="command")  # fmt: skip
    with trio.fail_after(30):
        readings = await sensor.get_readings()
    await gone(int(readings["value"]))


async def test_a_program_reads_nothing_and_has_its_own_group(bench: Bench) -> None:
    text = "import os, sys; print(os.getpgid(0) == os.getpid(), repr(sys.stdin.read()))"
    sensor = await bench.add("sensor", "it", program(text, format="text"), model="command")
    assert (await sensor.get_readings())["value"] == "True ''"
    assert signal.Signals.SIGKILL == 9


JPEG = b"\xff\xd8\xff\xe0 one"
PNG = b"\x89PNG\r\n\x1a\n two"


async def test_an_image_file_is_read_again_when_it_changes(bench: Bench, tmp_path: Path) -> None:
    color, depth = tmp_path / "color.jpg", tmp_path / "depth.png"
    color.write_bytes(JPEG)
    depth.write_bytes(PNG)
    lens = {"width_px": 4, "height_px": 3, "fx": 5.0, "fy": 5.0, "ppx": 2.0, "ppy": 1.5}
    camera = await bench.add(
        "camera",
        "it",
        {"color_path": str(color), "depth_image_file_path": str(depth), "intrinsic_parameters": lens},
        model="image_file",
    )
    images = await camera.get_images()
    assert [(i.source_name, i.mime_type, i.image) for i in images.images] == [
        ("color", "image/jpeg", JPEG),
        ("depth", "image/png", PNG),
    ]
    assert images.response_metadata.captured_at.timestamp() == pytest.approx(depth.stat().st_mtime, abs=0.01)
    (tmp_path / "new").write_bytes(PNG + b" three")
    (tmp_path / "new").rename(color)
    (image,) = (await camera.get_images(["color"])).images
    assert (image.mime_type, image.image) == ("image/png", PNG + b" three")
    properties = await camera.get_properties()
    assert properties.intrinsic_parameters.focal_x_px == 5.0
    assert properties.mime_types == ("image/png",)
    with pytest.raises(Unsupported):
        await camera.get_point_cloud()
    with pytest.raises(MachineError, match="no source"):
        await camera.get_images(["infrared"])
    color.unlink()
    with pytest.raises(MachineError, match="No such file") as caught:
        await camera.get_images()
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_point_cloud_comes_from_its_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "cloud.pcd").write_bytes(b"VERSION .7\n")
    camera = await bench.add("camera", "it", {"pointcloud_path": str(tmp_path / "cloud.pcd")}, model="image_file")
    assert (await camera.get_point_cloud()).point_cloud == b"VERSION .7\n"
    assert (await camera.get_properties()).supports_pcd
    assert (await camera.get_images()).images == []
    with pytest.raises(MachineError, match="not supported"):
        await camera.get_point_cloud("image/png")
