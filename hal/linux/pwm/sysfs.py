"""Hardware PWM through sysfs (Documentation/driver-api/pwm.rst): a folder for each chip, files for each channel.

The kernel keeps a wave running when its program dies, and sysfs has no owner of a channel. So a channel that is already
exported is taken over at duty 0, unless another program of this project holds a lock on the channel's folder. Programs
that do not use the lock cannot be detected.
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from hal.errors import Fault, HalError
from hal.linux.hotplug import UDEV_CONTROL, listen
from hal.ports.pwm import PwmChannel, PwmOutput
from support.files import try_lock_file

CLASS: Final = Path("/sys/class/pwm")
GROUP: Final = "gpio"  # the group with access on Raspberry Pi OS and by this project's udev rules
DEFAULT_FREQUENCY: Final = 800.0  # Hz, until a frequency is set
_NANO: Final = 1_000_000_000


@asynccontextmanager
async def hardware_pwm(channel: PwmChannel, root: Path = CLASS) -> AsyncIterator[PwmOutput]:
    """Open a channel at low level, and leave it low and unexported. If udev runs, waits until it has granted access.

    HalError: gone (with a list of the existing chips), busy, permission, unsupported.
    """
    chip = find_chip(channel.chip, root)
    what = str(channel)
    count = int((chip / "npwm").read_text())
    if not 0 <= channel.channel < count:
        raise HalError(
            f"{what}: the chip has {count} channels", Fault.GONE, remedy=f"use a channel from 0 to {count - 1}"
        )
    folder = chip / f"pwm{channel.channel}"
    await _export(chip, folder, channel)
    with _locked(folder, what):
        pwm = SysfsPwm(folder, what)
        try:
            pwm.begin()
            yield pwm
        finally:
            try:
                pwm.end()
            finally:
                _unexport(chip, channel)


def find_chip(chip: str, folder: Path = CLASS) -> Path:
    """Return the folder of a chip by its name or its device's name. HalError (gone) lists the existing chips."""
    folders = {path.name: path for path in sorted(folder.glob("pwmchip*"))}
    if chip in folders:
        return folders[chip]
    devices = {name: (path / "device").resolve().name for name, path in folders.items()}
    matches = [folders[name] for name, device in devices.items() if device == chip]
    if len(matches) > 1:
        raise HalError(
            f"several PWM chips belong to {chip}: {', '.join(path.name for path in matches)}",
            Fault.UNSUPPORTED,
            remedy="use the name of one of them",
        )
    if matches:
        return matches[0]
    chips = ", ".join(f"{name} of {device}" for name, device in devices.items()) or "none at all"
    raise HalError(
        f"there is no PWM chip {chip}; there is {chips}",
        Fault.GONE,
        remedy="correct the name, or enable PWM (on a Raspberry Pi: dtoverlay=pwm-2chan in config.txt)",
    )


async def _export(chip: Path, folder: Path, channel: PwmChannel) -> None:
    """Export the channel and wait until its files are writable, because the rules of udev may take a while."""
    async with listen() as events:
        try:
            (chip / "export").write_text(str(channel.channel))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise HalError.of(error, str(channel), group=GROUP) from error
            if not folder.exists():  # noqa: ASYNC240
                raise HalError(
                    f"{channel} is used by a kernel driver",
                    Fault.BUSY,
                    remedy="choose another channel, or remove its user from the device tree",
                ) from error
        else:
            if not _writable(folder) and UDEV_CONTROL.exists():
                async for event in events:
                    if event.action == "lost" or event.properties.get("EXPORT") == folder.name:
                        break
    if not _writable(folder):
        raise HalError(
            f"{channel}: permission denied",
            Fault.PERMISSION,
            remedy=f"add the user to group {GROUP}, and install the udev rules",
        )


def _writable(folder: Path) -> bool:
    return all(os.access(folder / name, os.W_OK) for name in ("period", "duty_cycle", "enable"))


def _unexport(chip: Path, channel: PwmChannel) -> None:
    try:
        (chip / "unexport").write_text(str(channel.channel))
    except OSError as error:
        if error.errno not in (errno.ENODEV, errno.ENOENT):  # it was removed together with its chip
            raise HalError.of(error, str(channel), group=GROUP) from error


@contextmanager
def _locked(folder: Path, what: str) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not try_lock_file(fd):
            raise HalError(f"{what} is used by another program", Fault.BUSY)
        yield
    finally:
        os.close(fd)


class SysfsPwm:
    """The files of an exported channel."""

    def __init__(self, folder: Path, what: str) -> None:
        self._folder = folder
        self._what = what
        self._state = {
            "period": 0,  # nanoseconds
            "duty_cycle": 0,  # nanoseconds
            "enable": 0,  # 0 or 1
        }
        self._wave = 0.0, DEFAULT_FREQUENCY

    def wave(self) -> tuple[float, float]:
        """Return duty and frequency as set; the hardware rounds them. HalError (gone) if the channel is gone."""
        self._read("enable")
        return self._wave

    def begin(self) -> None:
        """Stop the wave at low level."""
        self._state = {name: int(self._read(name)) for name in self._state}
        self._change(duty_cycle=0)
        self._change(enable=0)
        if (self._folder / "polarity").exists() and self._read("polarity") != "normal":
            self._write("polarity", "normal")

    def end(self) -> None:
        """Stop the wave at low level; does nothing if the channel is gone."""
        try:
            self._change(duty_cycle=0)
            self._change(enable=0)
        except HalError as error:
            if error.fault is not Fault.GONE:
                raise

    def set_wave(self, duty: float, frequency: float) -> None:
        """Set both so that a pulse is never longer than its period. If one of them is rejected, nothing changes."""
        if not 0 <= duty <= 1:
            raise ValueError(f"a duty of {duty:g} is not valid: expected 0 to 1")
        if not 0 < frequency <= _NANO:
            raise HalError(
                f"{self._what}: {frequency:g} Hz is not a valid frequency",
                Fault.UNSUPPORTED,
                remedy="use a frequency above 0 and up to 1e9 Hz",
            )
        period = round(_NANO / frequency)
        pulse = round(duty * period)
        if period < self._state["period"]:
            self._change(duty_cycle=pulse, period=period, enable=1)
        else:
            self._change(period=period, duty_cycle=pulse, enable=1)
        self._wave = duty, frequency

    def _change(self, **values: int) -> None:
        """Write the values that differ, in this order; if the kernel rejects one, restore those written before."""
        before = dict(self._state)
        try:
            for name, value in values.items():
                if value != self._state[name]:
                    self._write(name, value)
                    self._state[name] = value
        except HalError:
            for name in reversed(values):
                # A period cannot be reset to 0.
                if self._state[name] != before[name] and (name, before[name]) != ("period", 0):
                    self._write(name, before[name])
                    self._state[name] = before[name]
            raise

    def _read(self, name: str) -> str:
        try:
            return (self._folder / name).read_text().strip()
        except OSError as error:
            raise HalError.of(error, f"{self._what}: {name}", group=GROUP) from error

    def _write(self, name: str, value: int | str) -> None:
        try:
            (self._folder / name).write_text(str(value))
        except OSError as error:
            raise self._write_error(error, name, value) from error

    def _write_error(self, error: OSError, name: str, value: int | str) -> HalError:
        what = f"{self._what}: {name} {value}{'' if isinstance(value, str) or name == 'enable' else ' ns'}"
        if error.errno in (errno.EINVAL, errno.ERANGE, errno.ENOTSUP):
            return HalError(
                f"{what} was rejected: {error.strerror}",
                Fault.UNSUPPORTED,
                remedy="choose a frequency that the chip supports",
            )
        if error.errno == errno.EBUSY:
            return HalError(
                f"{what} was rejected: {error.strerror}",
                Fault.BUSY,
                remedy="use the same frequency for all channels of a chip that has only one clock",
            )
        return HalError.of(error, what, group=GROUP)
