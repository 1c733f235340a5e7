"""Hardware PWM through sysfs (Documentation/driver-api/pwm.rst): one folder for each chip, files for each channel.

The kernel keeps a wave running when its program dies, and sysfs knows no owner. So a channel that is exported already
is taken over, at duty 0, unless another program of this project holds it: that is a lock on the channel's folder.
Programs that do not know the lock cannot be seen.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from hal.errors import Fault, HalError
from hal.linux.hotplug import UDEV_CONTROL, listen
from hal.ports.pwm import PwmChannel, PwmOutput

CLASS: Final = Path("/sys/class/pwm")
GROUP: Final = "gpio"  # whose members may use PWM on Raspberry Pi OS and by this project's udev rules
DEFAULT_FREQUENCY: Final = 800.0  # Hz, until somebody sets one
_NANO: Final = 1_000_000_000


@asynccontextmanager
async def hardware_pwm(channel: PwmChannel, root: Path = CLASS) -> AsyncIterator[PwmOutput]:
    """Take a channel, low; leave it low and free. Waits for udev to give access, where udev runs.

    HalError: gone (the chips that exist are named), busy, permission, unsupported.
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
    """The chip's folder, by its name or its device's name. HalError (gone) names those that exist."""
    found = {path.name: path for path in sorted(folder.glob("pwmchip*"))}
    if chip in found:
        return found[chip]
    devices = {name: (path / "device").resolve().name for name, path in found.items()}
    fitting = [found[name] for name, device in devices.items() if device == chip]
    if len(fitting) > 1:
        raise HalError(
            f"several PWM chips belong to {chip}: {', '.join(path.name for path in fitting)}",
            Fault.UNSUPPORTED,
            remedy="name the one you mean",
        )
    if fitting:
        return fitting[0]
    there = ", ".join(f"{name} of {device}" for name, device in devices.items()) or "none at all"
    raise HalError(
        f"there is no PWM chip {chip}; there is {there}",
        Fault.GONE,
        remedy="correct the name, or enable PWM (on a Raspberry Pi: dtoverlay=pwm-2chan in config.txt)",
    )


async def _export(chip: Path, folder: Path, channel: PwmChannel) -> None:
    """Have the channel's files, writable. udev is told of a new channel, and its rules may take a while."""
    async with listen() as events:
        try:
            (chip / "export").write_text(str(channel.channel))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise HalError.of(error, str(channel), group=GROUP) from error
            if not folder.exists():  # noqa: ASYNC240
                raise HalError(
                    f"{channel} is used by a driver of the kernel",
                    Fault.BUSY,
                    remedy="choose another channel, or remove what uses it from the device tree",
                ) from error
        else:
            if not _writable(folder) and UDEV_CONTROL.exists():
                async for event in events:
                    if event.action == "lost" or event.properties.get("EXPORT") == folder.name:
                        break
    if not _writable(folder):
        raise HalError(
            f"{channel}: not allowed",
            Fault.PERMISSION,
            remedy=f"add the user to group {GROUP}, and install the udev rules",
        )


def _writable(folder: Path) -> bool:
    return all(os.access(folder / name, os.W_OK) for name in ("period", "duty_cycle", "enable"))


def _unexport(chip: Path, channel: PwmChannel) -> None:
    try:
        (chip / "unexport").write_text(str(channel.channel))
    except OSError as error:
        if error.errno not in (errno.ENODEV, errno.ENOENT):  # it went away with its chip
            raise HalError.of(error, str(channel), group=GROUP) from error


@contextmanager
def _locked(folder: Path, what: str) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HalError(f"{what} is used by another program", Fault.BUSY) from error
        yield
    finally:
        os.close(fd)


class SysfsPwm:
    """The files of one exported channel."""

    def __init__(self, folder: Path, what: str) -> None:
        self._folder = folder
        self._what = what
        self._state = {"period": 0, "duty_cycle": 0, "enable": 0}  # nanoseconds, nanoseconds, 0 or 1: as in the files
        self._wave = 0.0, DEFAULT_FREQUENCY

    def wave(self) -> tuple[float, float]:
        """Duty and frequency, as they were asked for; the hardware rounds. HalError (gone) if the channel is."""
        self._read("enable")
        return self._wave

    def begin(self) -> None:
        """Low and stopped, whatever it did before."""
        self._state = {name: int(self._read(name)) for name in self._state}
        self._change(duty_cycle=0)
        self._change(enable=0)
        if (self._folder / "polarity").exists() and self._read("polarity") != "normal":
            self._write("polarity", "normal")

    def end(self) -> None:
        """Low and stopped; nothing if it is gone."""
        try:
            self._change(duty_cycle=0)
            self._change(enable=0)
        except HalError as error:
            if error.fault is not Fault.GONE:
                raise

    def set_wave(self, duty: float, frequency: float) -> None:
        """Change both, so that at no moment a pulse is longer than its period; nothing changes if one is refused."""
        if not 0 <= duty <= 1:
            raise ValueError(f"a duty of {duty:g} is impossible: use 0 to 1")
        if not 0 < frequency <= _NANO:
            raise HalError(
                f"{self._what}: {frequency:g} Hz is impossible",
                Fault.UNSUPPORTED,
                remedy="use more than 0 and at most 1e9 Hz",
            )
        period = round(_NANO / frequency)
        pulse = round(duty * period)
        if period < self._state["period"]:
            self._change(duty_cycle=pulse, period=period, enable=1)
        else:
            self._change(period=period, duty_cycle=pulse, enable=1)
        self._wave = duty, frequency

    def _change(self, **values: int) -> None:
        """Write what differs, in this order; what was written is put back if the kernel refuses the rest."""
        before = dict(self._state)
        try:
            for name, value in values.items():
                if value != self._state[name]:
                    self._write(name, value)
                    self._state[name] = value
        except HalError:
            for name in reversed(values):
                if self._state[name] != before[name] and (name, before[name]) != ("period", 0):  # no way back to none
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
            raise self._refused(error, name, value) from error

    def _refused(self, error: OSError, name: str, value: int | str) -> HalError:
        what = f"{self._what}: {name} {value}{'' if isinstance(value, str) or name == 'enable' else ' ns'}"
        if error.errno in (errno.EINVAL, errno.ERANGE, errno.ENOTSUP):
            return HalError(
                f"{what} was refused: {error.strerror}",
                Fault.UNSUPPORTED,
                remedy="choose a frequency that the chip can make",
            )
        if error.errno == errno.EBUSY:
            return HalError(
                f"{what} was refused: {error.strerror}",
                Fault.BUSY,
                remedy="give all channels of a chip that has one clock the same frequency",
            )
        return HalError.of(error, what, group=GROUP)
