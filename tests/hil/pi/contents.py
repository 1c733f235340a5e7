"""The contents of the emulated Raspberry Pi 3: Debian packages for arm64, kernel modules, and its folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from tests.hil.image.places import BUILD, ROOT

PLACE: Final = BUILD / "pi"
WORK: Final = BUILD / "pi-work"
QEMU: Final = PLACE / "qemu"
LIBRARIES: Final = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio")
DTB: Final = "bcm2837-rpi-3-b.dtb"

QEMU_PACKAGES: Final = ("qemu-system-arm", "device-tree-compiler")
"""A QEMU with a working I2C controller of the BCM2835: 9 or newer, from backports where Debian is older."""

PACKAGES: Final = ("python3", "busybox-static", "libstdc++6", "libusb-1.0-0")
"""Packages that are unpacked with their dependencies but not configured: the guest needs no more."""

MODULES: Final = (
    *("i2c-dev", "i2c-bcm2835", "dwc2", "phy-generic", "usbnet", "cdc_ether", "rndis_host", "usbhid"),
    *("bcm2835_wdt", "spi-bcm2835", "spi-bcm2835aux", "spidev", "pwm-bcm2835", "lm75", "bcm2835-rng", "leds-gpio"),
)

INPUTS: Final = ("tests/hil/pi/[_cp]*.py", "requirements/run.lock")  # __main__, contents, packages


def private(tree: Path, program: str) -> list[str]:
    """Return the first words of a command that runs a program of an unpacked tree with its loader and libraries."""
    paths = ":".join(str(tree / name) for name in LIBRARIES)
    return [str(tree / "lib64/ld-linux-x86-64.so.2"), "--library-path", paths, str(tree / "usr/bin" / program)]


def inputs_digest() -> str:
    """Return a digest of all files that determine the machine."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in INPUTS for path in ROOT.glob(pattern)):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def built_from() -> str:
    """Return the digest of the existing machine; empty if there is none."""
    try:
        digest: str = json.loads((PLACE / "inputs.json").read_text())["files"]
    except (OSError, ValueError, KeyError):
        return ""
    return digest


def why_not_ready() -> str:
    """Return why the emulated Raspberry Pi is not available here; empty if it is."""
    digest = built_from()
    if not digest:
        return f"there is no emulated Raspberry Pi in {Path(PLACE)}: run `make hil`"
    if digest != inputs_digest():
        return f"the emulated Raspberry Pi in {PLACE} is older than what it is built from: run `make hil`"
    return ""
