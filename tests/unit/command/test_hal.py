"""`machine hal`: the output for findings, problems and boards, and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from command.cli import main
from command.hal.boards import pinout
from command.hal.show import explained, report
from hal.boards.catalogue import boards, named
from hal.inventory.findings import (
    Board,
    GpioChip,
    GpioLine,
    HardwareProblem,
    I2cAdapter,
    I2cDevice,
    Inventory,
    SerialFinding,
    UsbFinding,
)
from hal.inventory.rules import INSTALLED_RULES, rule_groups, shipped_rules
from tests.unit.hal.inventory.computer import Computer

BUS = I2cAdapter(
    1,
    "/dev/i2c-1",
    ("/dev/machine/i2c/bcm2835",),
    "bcm2835 (i2c@7e804000)",
    True,
    (I2cDevice(0x48, likely=("TMP102", "LM75")), I2cDevice(0x68, "rtc-ds1307")),
)
LINE = GpioLine(17, "GPIO17", "machine-server", True)
INVENTORY = Inventory(
    Board("raspberry-pi-4", "Raspberry Pi 4 Model B", "Raspberry Pi 4 Model B Rev 1.4"),
    gpio=(
        GpioChip(
            "gpiochip0", "/dev/gpiochip0", "pinctrl-bcm2711", 58, (GpioLine(17, "GPIO17", "machine-server", True),)
        ),
    ),
    i2c=(BUS, I2cAdapter(20, "/dev/i2c-20", (), "fef04500.i2c")),
    serial=(SerialFinding("/dev/ttyUSB0", ("/dev/serial/by-id/usb-A",), "0403", "6001", "A1", 0, "FTDI\x1b[31m UART"),),
    usb=(UsbFinding("1234", "abcd", "1-1.2", "", "Acme", "Widget"),),
)
SERIOUS = HardwareProblem("/dev/i2c-1", "user pi may not use it", "sudo usermod -aG i2c pi")
HINT = HardwareProblem("UART", "it is switched off", "add enable_uart=1", hint=True)


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["hal", *arguments], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    """Return a Raspberry Pi with an I2C clock, a serial adapter and a camera; I2C and UART are enabled, SPI is not."""
    computer = Computer(tmp_path)
    computer.firmware("Raspberry Pi 4 Model B Rev 1.4", "raspberrypi,4-model-b")
    computer.gpio(0, "pinctrl-bcm2711", 58, "fe200000.gpio")
    computer.i2c(1, "bcm2835 (i2c@7e804000)")
    computer.i2c_driver(1, 0x68, "rtc-ds1307")
    computer.tty("ttyUSB0", computer.usb("1-1.2", "0403", "6001", serial="A1", driver="ftdi_sio"), "usb-A1")
    computer.camera(0, "HD Webcam", 0, "usb-cam")
    computer.write("dev/serial0")
    computer.write("run/udev/control")
    return computer


def test_the_report_names_everything_in_tables() -> None:
    text = "\n".join(report(INVENTORY))
    assert text.splitlines()[0] == "Raspberry Pi 4 Model B (raspberry-pi-4, Raspberry Pi 4 Model B Rev 1.4)"
    for line in (
        "gpiochip0  pinctrl-bcm2711  58     1",
        "/dev/i2c-1   bcm2835 (i2c@7e804000)  /dev/machine/i2c/bcm2835  2",
        "/dev/i2c-20  fef04500.i2c                                      not probed",
        "0x48        /dev/i2c-1              TMP102, LM75",
        "0x68        /dev/i2c-1  rtc-ds1307",
        "1234:abcd   1-1.2                  none    Acme Widget",
    ):
        assert line in text.splitlines()
    assert "/dev/serial/by-id/usb-A  0403:6001  A1" in text
    assert "\x1b" not in text
    assert "GPIO17" not in text
    assert "gpiochip0:17  GPIO17  out        machine-server" in "\n".join(report(INVENTORY, lines=True))


def test_a_computer_without_hardware_is_reported_as_such() -> None:
    assert list(report(Inventory(Board("generic", "PC")))) == [
        "PC (generic)",
        "no chip, bus, port or device was found",
    ]


def at(computer: Computer, *arguments: str) -> tuple[int, str, str]:
    return run(*arguments, "--no-scan", "--root", str(computer.root))


def test_hal_without_a_command_lists_hardware_and_names_the_check(computer: Computer) -> None:
    code, out, _ = at(computer)
    assert code == 0
    assert out == at(computer, "list")[1]
    assert "0x68        /dev/i2c-1  rtc-ds1307" in out
    assert re.search(r"\d problems?: see machine hal check\n$", out)


def test_json_has_findings_and_problems(computer: Computer) -> None:
    data = json.loads(at(computer, "--json")[1])
    assert data["i2c"][0]["devices"] == [{"address": 0x68, "driver": "rtc-ds1307", "likely": []}]
    assert data["board"]["name"] == "raspberry-pi-4"
    hints = {problem["subject"]: problem["hint"] for problem in data["problems"]}
    assert hints["udev rules 70-machine.rules"] is False
    assert hints["SPI0 (pins 19, 21, 23, 24 and 26)"] is True


def test_config_prints_a_document_and_writes_alternatives_to_stderr(computer: Computer) -> None:
    code, out, err = at(computer, "--config")
    assert code == 0
    components = json.loads(out)["components"]
    assert [component["name"] for component in components] == ["local", "serial", "camera"]
    assert components[1]["attributes"]["path"] == "/dev/serial/by-id/usb-A1"
    assert "/dev/ttyUSB0: `model` may also be nmea" in err.splitlines()


def test_config_and_json_together_are_refused(computer: Computer) -> None:
    code, _, err = at(computer, "--config", "--json")
    assert code == 2
    assert "leave out --json" in err


def test_check_exits_with_1_while_a_problem_remains(computer: Computer) -> None:
    code, out, _ = at(computer, "check")
    assert code == 1
    assert "problem: udev rules 70-machine.rules: they are not installed" in out
    assert "  remedy: sudo machine hal install-rules\n" in out
    assert out.splitlines()[-1].endswith(("problem", "problems"))
    run("install-rules", "--root", str(computer.root))
    computer.write("etc/group", "".join(f"{group}:x:90:\n" for group in rule_groups()))
    left = json.loads(at(computer, "check", "--json")[1])
    assert [problem["subject"] for problem in left if not problem["hint"] and problem["subject"] != "libusb-1.0"] == []
    assert at(computer, "check")[0] == int(any(not problem["hint"] for problem in left))


def test_problems_come_before_hints_and_hints_do_not_count() -> None:
    assert list(explained((HINT, SERIOUS))) == [
        "problem: /dev/i2c-1: user pi may not use it",
        "  remedy: sudo usermod -aG i2c pi",
        "hint: UART: it is switched off",
        "  remedy: add enable_uart=1",
        "1 problem",
    ]
    assert list(explained((HINT,)))[-1] == "no problems"
    assert list(explained(())) == ["no problems"]


def test_the_inventory_of_the_running_computer_is_printed() -> None:
    data = json.loads(run("--json", "--no-scan")[1])
    assert set(data) >= {"board", "gpio", "i2c", "serial", "usb", "problems"}


def test_boards_are_listed_with_this_one_marked() -> None:
    code, out, _ = run("boards")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == [*(board.name for board in boards()), "generic"]
    assert out.count("this computer") == 1
    assert json.loads(run("boards", "--json")[1])["boards"][0]["name"] == boards()[0].name


def test_a_pinout_has_the_layout_of_the_header() -> None:
    lines = list(pinout(named("raspberry-pi-4")))
    assert "1    2" in lines[3]
    assert lines[3].split()[:2] == ["3.3", "V"]
    row = next(line for line in lines if "11   12" in line)
    assert row.index("GPIO17") < row.index("11   12") < row.index("GPIO18")
    assert any(line.startswith("I2C1") and line.endswith("/dev/i2c-1") for line in lines)


@pytest.mark.parametrize("board", boards(), ids=lambda board: board.name)
def test_each_pinout_has_every_pin_and_every_unverified_fact(board: object) -> None:
    text = "\n".join(pinout(board))  # type: ignore[arg-type]
    for pin in board.pins:  # type: ignore[attr-defined]
        assert f" {pin.names[-1]} " in f" {text} ".replace("\n", " ")
    for note in board.unverified:  # type: ignore[attr-defined]
        assert f"unverified: {note}" in text


def test_an_unknown_board_is_refused_with_similar_names() -> None:
    code, _, err = run("boards", "raspbery-pi-4")
    assert code == 1
    assert "did you mean raspberry-pi-4" in err
    assert json.loads(run("boards", "jetson-nano", "--json")[1])["name"] == "jetson-nano"


def test_rules_are_installed_updated_and_removed(tmp_path: Path) -> None:
    target = tmp_path / INSTALLED_RULES / "70-machine.rules"
    root = ("--root", str(tmp_path))
    assert run("install-rules", "--dry-run", *root)[1] == f"would write {target}\n"
    assert not target.exists()
    code, out, _ = run("install-rules", *root)
    assert (code, out) == (0, f"write {target}\n")
    assert target.read_text() == shipped_rules()[0].read_text()
    assert target.stat().st_mode & 0o777 == 0o644
    assert list(target.parent.iterdir()) == [target]
    assert run("install-rules", *root)[1] == f"{target} is up to date\n"
    target.write_text("# older")
    assert run("install-rules", *root)[1] == f"write {target}\n"
    assert run("install-rules", "--uninstall", "--dry-run", *root)[1] == f"would remove {target}\n"
    assert target.exists()
    assert run("install-rules", "--uninstall", *root)[1] == f"remove {target}\n"
    assert not target.exists()
    assert run("install-rules", "--uninstall", *root)[1] == f"{target} does not exist\n"


def test_installing_rules_without_root_is_refused_with_the_sudo_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    code, _, err = run("install-rules")
    assert code == 1
    assert "this needs root: sudo machine hal install-rules" in err
    code, out, _ = run("install-rules", "--dry-run")
    assert code == 0
    assert f"would write /{INSTALLED_RULES}/70-machine.rules" in out or "is up to date" in out


def test_an_unknown_user_is_refused_before_rules_are_written() -> None:
    code, out, err = run("install-rules", "--dry-run", "--user", "no-such-user")
    assert code == 1
    assert out == ""
    assert "there is no user 'no-such-user'" in err
    assert run("install-rules", "--uninstall", "--user", "x")[0] == 2


def test_each_rule_gives_a_group_or_a_link() -> None:
    """Each rule has a match and at least one action; every link is under machine/."""
    text = shipped_rules()[0].read_text()
    rules = [line for line in text.splitlines() if line and not line.startswith(("#", "LABEL", "ACTION"))]
    for rule in rules:
        assert rule.startswith('SUBSYSTEM=="')
        assert any(word in rule for word in ("GROUP=", "SYMLINK+=", "IMPORT{builtin}=", "RUN+=")), rule
        if "SYMLINK+=" in rule:
            assert 'SYMLINK+="machine/' in rule
        if "$attr{name}" in rule:
            assert 'OPTIONS+="string_escape=replace"' in rule
    assert all(f'GROUP="{group}"' in text for group in rule_groups())
