"""Hardware PWM: the writes to the files of a channel follow the kernel's rules."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.errors import Fault, HalError
from hal.linux.hardware import LinuxHardware
from hal.linux.pwm.sysfs import SysfsPwm, _locked, find_chip, hardware_pwm
from hal.ports.pwm import PwmChannel


class KernelChannel:
    """The files of one channel, with the rules of drivers/pwm/sysfs.c and pwm_apply_state() in drivers/pwm/core.c."""

    def __init__(self, *, refuses: Callable[[int], bool] = lambda period: False) -> None:
        self.state = {"period": 0, "duty_cycle": 0, "enable": 0, "polarity": "normal"}
        self.log: list[tuple[str, object]] = []
        self.gone = False
        self.shared: set[int] = set()  # periods of the chip's other channels
        self._refuses = refuses

    def __truediv__(self, name: str) -> KernelFile:
        return KernelFile(self, name)

    def write(self, name: str, text: str) -> None:
        if self.gone:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        after = {**self.state, name: text if name == "polarity" else int(text)}
        if name == "polarity" and self.state["enable"]:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        period, duty = after["period"], after["duty_cycle"]
        assert isinstance(period, int)
        assert isinstance(duty, int)
        if name != "polarity" and (period == 0 or duty > period or self._refuses(period)):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if after["enable"] and self.shared - {period}:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        self.state = after
        self.log.append((name, after[name]))


class KernelFile:
    """One file of a channel."""

    def __init__(self, channel: KernelChannel, name: str) -> None:
        self._channel = channel
        self._name = name

    def exists(self) -> bool:
        return not self._channel.gone

    def read_text(self) -> str:
        if self._channel.gone:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return f"{self._channel.state[self._name]}\n"

    def write_text(self, text: str) -> None:
        self._channel.write(self._name, text)


def opened(channel: KernelChannel) -> SysfsPwm:
    pwm = SysfsPwm(channel, "pwmchip0 channel 0")  # type: ignore[arg-type]
    pwm.begin()
    return pwm


def test_a_fresh_channel_gets_period_then_duty_then_runs() -> None:
    channel = KernelChannel()
    pwm = opened(channel)
    assert channel.log == []
    pwm.set_wave(0.25, 1000)
    assert channel.log == [("period", 1_000_000), ("duty_cycle", 250_000), ("enable", 1)]
    assert pwm.wave() == (0.25, 1000)
    pwm.end()
    assert channel.log[3:] == [("duty_cycle", 0), ("enable", 0)]


def test_pwm_left_running_by_a_killed_program_is_stopped_first() -> None:
    channel = KernelChannel()
    channel.state.update(period=20_000_000, duty_cycle=20_000_000, enable=1, polarity="inversed")
    opened(channel)
    assert channel.log == [("duty_cycle", 0), ("enable", 0), ("polarity", "normal")]


def test_only_what_changes_is_written() -> None:
    channel = KernelChannel()
    pwm = opened(channel)
    pwm.set_wave(0.5, 1000)
    channel.log.clear()
    pwm.set_wave(0.5, 1000)
    assert channel.log == []
    pwm.set_wave(0.75, 1000)
    assert channel.log == [("duty_cycle", 750_000)]


WAVES = st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 1e6)), min_size=1, max_size=8)


@given(WAVES)
def test_no_order_of_waves_is_refused_by_the_kernel(waves: list[tuple[float, float]]) -> None:
    channel = KernelChannel()
    pwm = opened(channel)
    for duty, frequency in waves:
        pwm.set_wave(duty, frequency)
        period = round(1e9 / frequency)
        assert channel.state == {
            "period": period, "duty_cycle": round(duty * period), "enable": 1, "polarity": "normal",
        }  # fmt: skip


@given(WAVES)
def test_a_refused_setting_changes_nothing(waves: list[tuple[float, float]]) -> None:
    channel = KernelChannel(refuses=lambda period: period > 100_000_000 or period < 10_000)
    pwm = opened(channel)
    for duty, frequency in waves:
        before, wave = dict(channel.state), pwm.wave()
        if 10_000 <= round(1e9 / frequency) <= 100_000_000:
            pwm.set_wave(duty, frequency)
        else:
            with pytest.raises(HalError, match="period") as caught:
                pwm.set_wave(duty, frequency)
            assert caught.value.fault is Fault.UNSUPPORTED
            assert channel.state == before
            assert pwm.wave() == wave


def test_channels_of_one_clock_need_one_frequency() -> None:
    channel = KernelChannel()
    channel.shared = {20_000_000}
    pwm = opened(channel)
    with pytest.raises(HalError, match="the same frequency") as caught:
        pwm.set_wave(0.5, 1000)
    assert caught.value.fault is Fault.BUSY
    assert channel.state["enable"] == 0
    pwm.set_wave(0.5, 50)
    with pytest.raises(HalError):
        pwm.set_wave(0.25, 100)
    assert channel.state == {"period": 20_000_000, "duty_cycle": 10_000_000, "enable": 1, "polarity": "normal"}


@pytest.mark.parametrize("duty", [-0.1, 1.1, float("nan")])
def test_an_impossible_duty_is_refused(duty: float) -> None:
    channel = KernelChannel()
    with pytest.raises(ValueError, match="0 to 1"):
        opened(channel).set_wave(duty, 1000)
    assert channel.log == []


@pytest.mark.parametrize("frequency", [0.0, -1.0, 2e9, float("nan"), float("inf")])
def test_an_impossible_frequency_is_refused(frequency: float) -> None:
    with pytest.raises(HalError, match="not a valid") as caught:
        opened(KernelChannel()).set_wave(0.5, frequency)
    assert caught.value.fault is Fault.UNSUPPORTED


def test_an_unplugged_chip_is_reported_and_closing_still_works() -> None:
    channel = KernelChannel()
    pwm = opened(channel)
    pwm.set_wave(0.5, 1000)
    channel.gone = True
    for use in (pwm.wave, lambda: pwm.set_wave(0.25, 1000)):
        with pytest.raises(HalError) as caught:
            use()
        assert caught.value.fault is Fault.GONE
    pwm.end()


# ---- chips


def chip(root: Path, name: str, device: str, channels: int = 2) -> Path:
    folder = root / "class" / name
    folder.mkdir(parents=True)
    (root / "devices" / device).mkdir(parents=True, exist_ok=True)
    (folder / "device").symlink_to(root / "devices" / device)
    (folder / "npwm").write_text(f"{channels}\n")
    return folder


def test_a_chip_is_found_by_its_name_or_its_devices(tmp_path: Path) -> None:
    first, two = chip(tmp_path, "pwmchip0", "fe20c000.pwm"), chip(tmp_path, "pwmchip2", "1-0040")
    folder = tmp_path / "class"
    assert find_chip("pwmchip0", folder) == find_chip("fe20c000.pwm", folder) == first
    assert find_chip("1-0040", folder) == two
    with pytest.raises(HalError, match=r"pwmchip0 of fe20c000\.pwm, pwmchip2 of 1-0040") as caught:
        find_chip("pwmchip1", folder)
    assert caught.value.fault is Fault.GONE
    assert "dtoverlay" in caught.value.remedy
    chip(tmp_path, "pwmchip4", "1-0040")
    with pytest.raises(HalError, match="pwmchip2, pwmchip4"):
        find_chip("1-0040", folder)


async def test_without_any_chip(tmp_path: Path) -> None:
    with pytest.raises(HalError, match="none at all"):
        find_chip("pwmchip0", tmp_path)


async def test_a_channel_of_this_computer_that_is_not_there() -> None:
    with pytest.raises(HalError) as caught:
        async with LinuxHardware().pwm(PwmChannel("pwmchip99", 0)):
            pass
    assert caught.value.fault is Fault.GONE


def test_two_programs_cannot_hold_one_channel(tmp_path: Path) -> None:
    with _locked(tmp_path, "pwmchip0 channel 0"):
        with (
            pytest.raises(HalError, match="pwmchip0 channel 0 is used") as caught,
            _locked(tmp_path, "pwmchip0 channel 0"),
        ):
            pass
        assert caught.value.fault is Fault.BUSY
    with _locked(tmp_path, "pwmchip0 channel 0"):
        pass


async def test_a_channel_is_exported_used_and_unexported(tmp_path: Path) -> None:
    folder = chip(tmp_path, "pwmchip0", "fe20c000.pwm")
    for name in ("export", "unexport"):
        (folder / name).touch()
    channel = folder / "pwm1"
    channel.mkdir()
    for name, value in {"period": "0", "duty_cycle": "0", "enable": "0", "polarity": "normal"}.items():
        (channel / name).write_text(value)
    target = PwmChannel("fe20c000.pwm", 1)
    async with hardware_pwm(target, tmp_path / "class") as wave:
        assert (folder / "export").read_text() == "1"
        wave.set_wave(0.5, 1000)
        assert [(channel / name).read_text() for name in ("period", "duty_cycle", "enable")] == [
            "1000000",
            "500000",
            "1",
        ]
        with pytest.raises(HalError, match="used by another program"):
            await hardware_pwm(target, tmp_path / "class").__aenter__()
        assert (folder / "unexport").read_text() == ""
    assert [(channel / name).read_text() for name in ("duty_cycle", "enable")] == ["0", "0"]
    assert (folder / "unexport").read_text() == "1"
    with pytest.raises(HalError, match="0 to 1") as caught:
        await hardware_pwm(PwmChannel("pwmchip0", 2), tmp_path / "class").__aenter__()
    assert caught.value.fault is Fault.GONE
