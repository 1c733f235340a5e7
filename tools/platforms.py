"""Which modules run on which operating systems, for `check_platforms`, `check_types` and the tests on Wine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PACKAGES: Final = (
    *("schema", "nursery_graph", "support", "triggers", "telemetry", "uplink", "rpc", "engine", "hal", "models"),
    *("runtime", "agent.console", "agent.launch", "agent.update"),
)
"""Packages that run on Windows, with the exceptions below. The rest of agent does not, nor do cloud,
netmgr, training, rig and command."""

SEAMS: Final = frozenset(
    {
        "agent/launch/command.py",  # how releases are started
        "engine/hardware.py",  # hardware of this computer
        "engine/metrics/system.py",  # measurements of processes and of the computer
        "hal/clock_changes.py",  # the clock was set
        "nursery_graph/process.py",  # processes with all that they start
        "rpc/http2/writer.py",  # writing to sockets by their descriptors
        "rpc/network/local.py",  # channels between programs of this computer
        "rpc/network/descriptors.py",  # limit of connections
        "rpc/network/network_interfaces.py",
        "rpc/network/tls.py",  # files in memory
        "runtime/parts/modules/limits.py",  # limits and usage of modules
        "support/clock/zone.py",
        "support/files/durable.py",  # files on the disk, descriptors
        "support/files/inotify.py",  # changes in folders
        "support/files/locks.py",
        "support/files/private.py",  # permissions
        "support/foreign/removal.py",
        "support/foreign/unpacking.py",
        "support/start.py",  # signals that stop a program
        "support/windows/__init__.py",  # calls and structures of Windows
        "telemetry/logs/sinks.py",  # the console
        "uplink/files.py",  # descriptors of a file that others replace
        "uplink/platforms.py",  # names of the system and the processor
    }
)
"""The only modules that may ask for the operating system. A module whose name ends with _windows belongs to one."""

LINUX: Final[Mapping[str, str]] = {
    "hal.inventory.access": "users and groups of POSIX",
    "hal.inventory.checks": "users and groups of POSIX",
    "hal.inventory.serial_port": "device numbers of POSIX",
    "hal.linux": "the interfaces of the Linux kernel for hardware",
    "hal.sim.serial": "pseudo-terminals",
    "hal.sim.serial_port": "pseudo-terminals",
    "hal.zero": "gpiozero, which needs GPIO",
    "models.command.model": "process groups of POSIX",
    "models.mlmodel.onnx.session": "the size of the memory by sysconf",
    "models.planner.child": "limits of processes by setrlimit",
    "models.planner.process": "sessions of POSIX",
    "models.shell": "pseudo-terminals, and files opened relative to folders",
    "rpc.client.blocking": "Unix sockets",
    "runtime.parts.mdns.carrier": "multicast sockets that share a port",
    "runtime.parts.service.install": "systemd",
    "runtime.parts.web.profiling.cpu": "timers that send signals",
    "runtime.programs.archive": "archives of modules, which are not unpacked on Windows",
    "runtime.programs.store": "archives of modules, which are not unpacked on Windows",
    "support.foreign.apart": "limits of processes by setrlimit",
    "support.foreign.child": "limits of processes by setrlimit",
    "support.foreign.removal_at": "files opened relative to folders",
    "support.foreign.unpacking_at": "files opened relative to folders",
    "support.foreign.walking_at": "files opened relative to folders",
}
"""Modules, or packages of modules, that do not claim Windows, and what they need. Nor does macOS claim them."""

ONLY_LINUX: Final[Mapping[str, str]] = {
    "engine.metrics.system": "the clock since the start of the computer, and /proc",
    "nursery_graph.process": "descriptors of processes",
    "rpc.network.network_interfaces": "netlink",
    "runtime.parts.modules.limits": "limits of other processes by prlimit",
}
"""Further modules that do not claim macOS: they are written for Linux and Windows."""

UNLOADABLE: Final = frozenset(
    {
        *("hal.linux.evdev", "hal.linux.gpio.chips", "hal.linux.gpio.lines", "hal.linux.i2c.bus"),
        *("hal.linux.pwm.software", "hal.linux.serial", "hal.linux.spi", "hal.linux.timer"),
        *("hal.linux.video.camera", "hal.linux.video.device", "hal.zero.factory", "hal.zero.pins"),
        *("models.command.model", "models.planner.child", "models.shell.model", "models.shell.receive"),
        *("models.shell.terminal", "support.foreign.child"),
        *("support.foreign.removal_at", "support.foreign.unpacking_at", "support.foreign.walking_at"),
    }
)
"""Those of LINUX that cannot even be imported on Windows; all other modules can."""


def needs_linux(module: str) -> bool:
    """Return whether a module is listed in LINUX, itself or with its package."""
    return any(module == name or module.startswith(f"{name}.") for name in LINUX)
