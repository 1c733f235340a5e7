"""Each obstacle is reported with its remedy, and only where it exists."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hal.boards.catalogue import named
from hal.boards.definition import BoardDefinition
from hal.inventory.access import User
from hal.inventory.buses import i2c_adapters, spi_places
from hal.inventory.checks import config_settings, hardware_problems
from hal.inventory.findings import Board, HardwareProblem, Inventory
from hal.inventory.gpio import gpio_chips
from hal.inventory.rules import INSTALLED_RULES, RuleState, rule_groups, shipped_rules, state
from hal.inventory.usb import serial_findings, usb_devices
from tests.unit.hal.inventory.computer import Computer

ROOT_USER = User("root", 0, frozenset({0}))
PI = User("pi", 1000, frozenset({1000}), frozenset())
PC = BoardDefinition("generic", "PC")
PI_4 = named("raspberry-pi-4")


def inventory_of(computer: Computer) -> Inventory:
    root = computer.root
    return Inventory(
        Board("x", "X"),
        gpio=gpio_chips(root),
        i2c=i2c_adapters(root),
        spi=spi_places(root),
        serial=serial_findings(root),
        usb=usb_devices(root),
    )


def check(computer: Computer, board: BoardDefinition = PC, user: User = ROOT_USER) -> dict[str, HardwareProblem]:
    return {
        problem.subject: problem
        for problem in hardware_problems(inventory_of(computer), board, root=computer.root, user=user)
    }


@pytest.fixture
def ready(computer: Computer) -> Computer:
    """Return a computer with all our rules and groups installed and udev running."""
    for rules in shipped_rules():
        (computer.root / INSTALLED_RULES).mkdir(parents=True, exist_ok=True)
        shutil.copy(rules, computer.root / INSTALLED_RULES / rules.name)
    computer.write("etc/group", "".join(f"{group}:x:{90 + number}:\n" for number, group in enumerate(rule_groups())))
    computer.write("run/udev/control")
    return computer


def serious(problems: dict[str, HardwareProblem]) -> list[str]:
    return [subject for subject, problem in problems.items() if not problem.hint and subject != "libusb-1.0"]


def test_nothing_is_wrong_with_a_computer_that_is_ready(ready: Computer) -> None:
    assert serious(check(ready)) == []


def test_rules_that_are_not_installed(ready: Computer) -> None:
    (ready.root / INSTALLED_RULES / "70-machine.rules").unlink()
    problem = check(ready)["udev rules 70-machine.rules"]
    assert problem.remedy == "sudo machine hal install-rules"
    assert not problem.hint
    (ready.root / "run/udev/control").unlink()
    assert check(ready)["udev rules 70-machine.rules"].hint, "without udev they would change nothing"


def test_rules_of_another_version(ready: Computer) -> None:
    ready.write(f"{INSTALLED_RULES}/70-machine.rules", "# older")
    assert state(ready.root) is RuleState.OLD
    assert check(ready)["udev rules 70-machine.rules"].reason == "another version is installed"


def test_rules_of_a_package_count_too(ready: Computer) -> None:
    (ready.root / INSTALLED_RULES / "70-machine.rules").rename(ready.write("usr/lib/udev/rules.d/70-machine.rules"))
    assert state(ready.root) is RuleState.CURRENT


def test_groups_that_do_not_exist(ready: Computer) -> None:
    ready.write("etc/group", "gpio:x:90:\nroot:x:0:\n")
    assert any(subject.startswith("groups i2c, spi") for subject in check(ready))


def test_the_rules_name_the_groups() -> None:
    assert set(rule_groups()) == {"gpio", "i2c", "spi", "dialout", "plugdev", "video", "input"}


def test_i2c_without_nodes_needs_its_module(ready: Computer) -> None:
    ready.i2c(1, "bcm2835", node=False)
    problem = check(ready)["I2C buses i2c-1"]
    assert problem.remedy.startswith("sudo modprobe i2c-dev")
    ready.write("dev/i2c-1")
    assert "I2C buses i2c-1" not in check(ready)


def test_spi_controllers_without_a_place_for_programs(ready: Computer) -> None:
    ready.write("sys/class/spi_master/spi0/uevent")
    assert check(ready)["SPI controllers spi0"].hint
    ready.write("sys/class/spidev/spidev0.0/dev")
    assert "SPI controllers spi0" not in check(ready)


def test_a_node_that_the_user_may_not_use(ready: Computer) -> None:
    ready.gpio(0, "pinctrl-bcm2711", 58, "fe200000.gpio")
    (ready.root / "dev/gpiochip0").chmod(0o600)
    problem = check(ready, user=PI)["/dev/gpiochip0"]
    assert not problem.hint
    assert "install-rules" in problem.remedy


def test_buses_of_a_raspberry_pi_that_are_switched_off(ready: Computer) -> None:
    ready.firmware("Raspberry Pi 4 Model B", "raspberrypi,4-model-b")
    ready.write("boot/firmware/config.txt", "arm_64bit=1\n#dtparam=i2c_arm=on\ndtparam=spi=on\n")
    wrong = check(ready, PI_4)
    i2c, spi, uart = (wrong[subject] for subject in wrong if "pins" in subject)
    assert i2c.subject == "I2C1 (pins 3 and 5)"
    assert i2c.remedy == "add dtparam=i2c_arm=on to /boot/firmware/config.txt (or use raspi-config), and reboot"
    assert spi.remedy == "reboot"
    assert "enable_uart=1" in uart.remedy
    assert i2c.hint
    for node in ("i2c-1", "spidev0.0", "serial0"):
        ready.write(f"dev/{node}")
    assert not any("pins" in subject for subject in check(ready, PI_4))


def test_comments_of_config_txt_switch_nothing_on() -> None:
    said = config_settings("# dtparam=spi=on\ndtparam=i2c=on,i2s=on # both\n\n[all]\nenable_uart=1\n")
    assert said == {"dtparam=i2c_arm=on", "dtparam=i2s=on", "[all]=", "enable_uart=1"}


def test_a_bus_that_only_lacks_its_node_is_not_switched_off(ready: Computer) -> None:
    ready.firmware("Raspberry Pi 4 Model B", "raspberrypi,4-model-b")
    ready.i2c(1, "bcm2835", node=False)
    wrong = check(ready, PI_4)
    assert "I2C buses i2c-1" in wrong
    assert "I2C1 (pins 3 and 5)" not in wrong


def test_another_computer_has_nothing_to_switch_on(ready: Computer) -> None:
    assert not any("pins" in subject for subject in check(ready, PI_4)), "no device tree: not a Raspberry Pi"


def test_brltty_is_wrong_where_it_takes_an_adapter(ready: Computer) -> None:
    ready.write("proc/77/comm", "brltty\n")
    assert check(ready)["brltty"].hint
    ready.usb("1-1", "1a86", "7523", driver="ch341")
    problem = check(ready)["brltty"]
    assert not problem.hint
    assert "1a86:7523 is such a device" in problem.reason
    assert problem.remedy.startswith("sudo apt remove brltty")


def test_modem_manager_is_only_worth_knowing(ready: Computer) -> None:
    ready.write("proc/78/comm", "ModemManager\n")
    ready.usb("1-1", "0403", "6001", driver="ftdi_sio")
    assert check(ready)["ModemManager"].hint
    ready.write("proc/78/comm", "bash\n")
    assert "ModemManager" not in check(ready)


def test_a_console_on_the_headers_port(ready: Computer) -> None:
    ready.write("dev/ttyAMA0")
    ready.link("dev/serial0", "dev/ttyAMA0")
    ready.write("proc/cmdline", "console=ttyAMA0,115200 console=tty1 root=/dev/mmcblk0p2\n")
    problem = check(ready, PI_4)["UART (/dev/serial0)"]
    assert "remove console=ttyAMA0 from cmdline.txt" in problem.remedy


def test_problems_of_the_scan_come_first(computer: Computer) -> None:
    said = HardwareProblem("/dev/i2c-1", "the scan failed", "check the wiring")
    wrong = hardware_problems(Inventory(Board("x", "X"), problems=(said,)), PC, root=computer.root, user=ROOT_USER)
    assert wrong[0] is said


def test_a_bus_without_permission_is_reported_once(computer: Computer) -> None:
    computer.i2c(1, "bcm2835")
    (computer.root / "dev/i2c-1").chmod(0o600)
    denied = HardwareProblem("/dev/i2c-1 (bcm2835)", "the scan failed: Permission denied", "add the user to group i2c")
    looked = Inventory(Board("x", "X"), i2c=i2c_adapters(computer.root), problems=(denied,))
    wrong = hardware_problems(looked, PC, root=computer.root, user=PI)
    assert [problem.subject for problem in wrong if "i2c-1" in problem.subject] == ["/dev/i2c-1"]
    assert denied in hardware_problems(looked, PC, root=computer.root, user=ROOT_USER)


def test_the_rules_are_found_in_a_checkout_and_in_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hal.inventory import rules

    (checkout,) = shipped_rules()
    assert checkout.parent.name == "udev"
    site = tmp_path / "lib/python3/site-packages/hal/inventory"
    site.mkdir(parents=True)
    (tmp_path / "share/machine-runtime/udev").mkdir(parents=True)
    shutil.copy(checkout, tmp_path / "share/machine-runtime/udev")
    monkeypatch.setattr(rules, "__file__", str(site / "rules.py"))
    data = tmp_path / "lib/python3/site-packages/share/machine-runtime/udev"
    for prefix in ("", "user"):
        monkeypatch.setattr(
            "sysconfig.get_path",
            lambda name, scheme="", prefix=prefix: str(tmp_path if bool(scheme) == bool(prefix) else tmp_path / "x"),
        )
        assert shipped_rules() == (tmp_path / "share/machine-runtime/udev/70-machine.rules",)
    monkeypatch.setattr("sysconfig.get_path", lambda name, scheme="": str(tmp_path / "x"))
    assert shipped_rules() == ()
    shutil.copytree(tmp_path / "share/machine-runtime/udev", data)
    assert shipped_rules() == (data / "70-machine.rules",)
