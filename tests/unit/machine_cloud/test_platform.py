"""A machine's description of its computer."""

from __future__ import annotations

from pathlib import Path

import pytest

from uplink.platforms import CUDA, DISTRIBUTION, MODEL, TEGRA, cuda_tags, jetson_tags, pi_tags, tags


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("Raspberry Pi 4 Model B Rev 1.4", ["pi:4", "pifull:4B"]),
        ("Raspberry Pi 5 Model B Rev 1.0", ["pi:5", "pifull:5B"]),
        ("Raspberry Pi 3 Model B Plus Rev 1.3", ["pi:3", "pifull:3Bplus"]),
        ("Raspberry Pi Zero 2 W Rev 1.0", ["pi:02", "pifull:02W"]),
        ("Raspberry Pi Zero W Rev 1.1", ["pi:0", "pifull:0W"]),
        ("Raspberry Pi Compute Module 4 Rev 1.1", ["pi:4", "pifull:CM4"]),
        ("Raspberry Pi Model B Plus Rev 1.2", ["pi:1", "pifull:1Bplus"]),
        ("NVIDIA Jetson Orin Nano Developer Kit", []),
        ("", []),
    ],
)
def test_raspberry_pi(model: str, expected: list[str]) -> None:
    assert list(pi_tags(model)) == expected


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic", ["jetpack:6", "l4t:36.4.3"]),
        ("# R32 (release), REVISION: 7.4, GCID: 33514132", ["jetpack:4", "l4t:32.7.4"]),
        ("# R99 (release), REVISION: 1.0", ["l4t:99.1.0"]),
        ("R36", []),
    ],
)
def test_jetson(release: str, expected: list[str]) -> None:
    assert list(jetson_tags(release)) == expected


@pytest.mark.parametrize("version", ["", "[]", "{", '{"cuda": {"version": "x"}}', '{"cuda": 12}'])
def test_no_cuda(version: str) -> None:
    assert list(cuda_tags(version)) == []


def test_a_whole_computer(tmp_path: Path) -> None:
    for name, text in {
        DISTRIBUTION[1]: '# by hand\nID=debian\nVERSION_ID="12.5"\nVERSION_CODENAME=\'bookworm\'\nNAME="open\n',
        MODEL: "Raspberry Pi 5 Model B Rev 1.0\0",
        TEGRA: "# R36 (release), REVISION: 4.3\n",
        CUDA: '{"cuda": {"name": "CUDA SDK", "version": "12.6.68"}}',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert tags(tmp_path) == (
        "distro:debian",
        "os_version:12",
        "codename:bookworm",
        "pi:5",
        "pifull:5B",
        "jetpack:6",
        "l4t:36.4.3",
        "cuda:true",
        "cuda_version:12",
    )


def test_a_computer_that_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / DISTRIBUTION[0]).write_text("ID='a, b'\nVERSION_ID=$(reboot)\n")
    assert tags(tmp_path) == ()
