"""Checks for problems that prevent the use of this computer's hardware, with remedies."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hal.boards.definition import BoardDefinition
from hal.inventory.access import DeviceNode, User, current_user, nodes, refused, usable
from hal.inventory.findings import HardwareProblem, Inventory
from hal.inventory.rules import RuleState, rule_groups, shipped_rules, state
from hal.inventory.sysfs import ROOT, entries, text

_LIBRARIES: Final = {"gpiod": "GPIO", "smbus2": "I2C", "serial": "serial ports", "usb": "USB devices"}
_CONFIG: Final = ("boot/firmware/config.txt", "boot/config.txt")  # since Raspberry Pi OS 12, and before
_GRABBERS: Final = {
    "brltty": "it claims serial adapters (CH340, CP210x, FTDI) as Braille displays",
    "ModemManager": "it probes each new serial port for some seconds, to detect modems",
}
_BRAILLE: Final = {("1a86", "7523"), ("10c4", "ea60"), ("0403", "6001")}
"""USB devices that the udev rules of brltty claim, although most of them are plain adapters."""


def hardware_problems(
    inventory: Inventory, board: BoardDefinition, *, root: Path = ROOT, user: User | None = None
) -> tuple[HardwareProblem, ...]:
    """Return all problems; `hint` is set for those that are only informational."""
    claimed, user, expected_groups = _claims(inventory, root, user or current_user())
    denied = {node.path for node in claimed if not usable(node, user)}
    return (
        *(problem for problem in inventory.problems if problem.subject.partition(" ")[0] not in denied),
        *_libraries(inventory),
        *_rules(root),
        *refused(claimed, user, expected_groups),
        *_modules(inventory, root),
        *_switched_off(board, root),
        *_grabbers(inventory, root),
        *_console(board, root),
    )


def _claims(inventory: Inventory, root: Path, user: User) -> tuple[tuple[DeviceNode, ...], User, dict[str, str]]:
    expected_groups = {
        **{chip.path: "gpio" for chip in inventory.gpio},
        **{adapter.path: "i2c" for adapter in inventory.i2c},
        **{place.path: "spi" for place in inventory.spi if place.path},
        **{port.path: "dialout" for port in inventory.serial},
        **{camera.path: "video" for camera in inventory.cameras},
        **{device.path: "input" for device in inventory.inputs if device.kind == "gamepad"},
        **{device.path: "plugdev" for device in inventory.usb if device.path and not device.drivers},
        **{f"/sys/class/pwm/{chip.name}/export": "gpio" for chip in inventory.pwm},
    }
    return nodes(expected_groups, root), user, expected_groups


def _libraries(inventory: Inventory) -> Iterator[HardwareProblem]:
    for module, use in _LIBRARIES.items():
        if importlib.util.find_spec(module) is None:
            yield HardwareProblem(
                f"Python module {module}", f"it is not installed, but needed for {use}", "reinstall machine-runtime"
            )
    if importlib.util.find_spec("usb") is not None and not _libusb():
        yield HardwareProblem(
            "libusb-1.0",
            "it is not installed, but needed for USB devices without a kernel driver",
            "sudo apt install libusb-1.0-0",
            hint=not any(not device.drivers for device in inventory.usb),
        )


def _libusb() -> bool:
    from usb.backend import libusb1

    return libusb1.get_backend() is not None


def _rules(root: Path) -> Iterator[HardwareProblem]:
    running = (root / "run/udev/control").exists()
    names = ", ".join(rules.name for rules in shipped_rules())
    if not names:
        yield HardwareProblem("udev rules", "they are not part of this installation", "reinstall machine-runtime")
        return
    match state(root):
        case RuleState.ABSENT:
            reason = "they are not installed: devices have no stable names, and only root can use some of them"
            yield HardwareProblem(f"udev rules {names}", reason, "sudo machine hal install-rules", hint=not running)
        case RuleState.OLD:
            reason = "another version is installed"
            yield HardwareProblem(f"udev rules {names}", reason, "sudo machine hal install-rules", hint=not running)
        case RuleState.CURRENT:
            missing = [group for group in rule_groups() if not _exists(group, root)]
            if missing:
                reason = "they do not exist, so udev ignores the rules that use them"
                yield HardwareProblem(f"groups {', '.join(missing)}", reason, "sudo machine hal install-rules")


def _exists(group: str, root: Path) -> bool:
    if root == ROOT:
        import grp

        return any(entry.gr_name == group for entry in grp.getgrall())
    return any(line.startswith(f"{group}:") for line in text(root / "etc/group").splitlines())


def _modules(inventory: Inventory, root: Path) -> Iterator[HardwareProblem]:
    without = [adapter for adapter in inventory.i2c if not (root / adapter.path.lstrip("/")).exists()]
    if without:
        names = ", ".join(f"i2c-{adapter.number}" for adapter in without)
        yield HardwareProblem(
            f"I2C buses {names}",
            "they have no nodes in /dev: the module i2c-dev is not loaded",
            "sudo modprobe i2c-dev, and echo i2c-dev | sudo tee /etc/modules-load.d/i2c-dev.conf to keep it",
        )
    controllers = [controller.name for controller in entries(root / "sys/class/spi_master", "spi*")]
    if controllers and not inventory.spi:
        yield HardwareProblem(
            f"SPI controllers {', '.join(controllers)}",
            "no devices are configured for them, so programs cannot use them",
            "load spidev, or add a spidev device to the device tree",
            hint=True,
        )


def _switched_off(board: BoardDefinition, root: Path) -> Iterator[HardwareProblem]:
    """Return the buses of a Raspberry Pi's header that can be switched on."""
    if not board.name.startswith("raspberry-pi") or not (root / "proc/device-tree").exists():
        return
    config = next((path for path in _CONFIG if (root / path).exists()), _CONFIG[0])
    settings = config_settings(text(root / config))
    uart = next(iter(board.serial.items()), ("", ""))
    offers = (
        ("I2C1 (pins 3 and 5)", board.i2c.get("I2C1", ""), "dtparam=i2c_arm=on"),
        ("SPI0 (pins 19, 21, 23, 24 and 26)", board.spi.get("SPI0", ""), "dtparam=spi=on"),
        (f"{uart[0]} (pins 8 and 10)", uart[1], "dtparam=uart0=on" if uart[0] == "UART0" else "enable_uart=1"),
    )
    for title, path, line in offers:
        bus_exists = (root / "sys/bus/i2c/devices" / Path(path).name).exists()  # then only its node is missing
        if not path or bus_exists or (root / path.lstrip("/")).exists():
            continue
        if line in settings:
            reason, remedy = f"it was switched on in /{config} after the last start", "reboot"
        else:
            reason, remedy = "it is switched off", f"add {line} to /{config} (or use raspi-config), and reboot"
        yield HardwareProblem(title, f"{reason}: there is no {path}", remedy, hint=True)


def config_settings(config: str) -> frozenset[str]:
    """Return the settings in a Raspberry Pi's config.txt, with one entry per parameter, such as `dtparam=spi=on`."""
    settings: set[str] = set()
    for line in config.splitlines():
        key, _, value = line.partition("#")[0].strip().partition("=")
        if key in ("dtparam", "dtoverlay"):
            settings.update(f"{key}={setting.strip()}".replace("=i2c=", "=i2c_arm=") for setting in value.split(","))
        elif key:
            settings.add(f"{key}={value}")
    return frozenset(settings)


def _grabbers(inventory: Inventory, root: Path) -> Iterator[HardwareProblem]:
    running = {text(process / "comm") for process in entries(root / "proc", "[0-9]*")}
    for program, reason in _GRABBERS.items():
        if program not in running:
            continue
        taken = [f"{usb.vendor}:{usb.product}" for usb in inventory.usb if (usb.vendor, usb.product) in _BRAILLE]
        wrong = program == "brltty" and bool(taken)
        example = f"; {', '.join(taken)} is such a device" if wrong else ""
        yield HardwareProblem(
            program,
            f"{reason}{example}",
            f"sudo apt remove {program.lower()}, unless you need it",
            hint=not wrong,
        )


def _console(board: BoardDefinition, root: Path) -> Iterator[HardwareProblem]:
    line = text(root / "proc/cmdline")
    consoles = {word.removeprefix("console=").partition(",")[0] for word in line.split() if word.startswith("console=")}
    for title, path in board.serial.items():
        node = root / path.lstrip("/")
        names = {Path(path).name, node.resolve().name} if node.exists() else {Path(path).name}
        if taken := sorted(names & consoles):
            yield HardwareProblem(
                f"{title} ({path})",
                "it is used by the kernel's console, and possibly by a login",
                f"remove console={taken[0]} from cmdline.txt (or use raspi-config), and reboot",
                hint=True,
            )
