"""Inventory: the hardware that is connected to this computer, and the problems that prevent its use.

Public, in the order in which to read them:

* `board`: Detect the board from the device tree, and adapt its definition to the running kernel by sysfs
* `findings`: The records of an inventory
* `serial_port`: The serial ports of this computer, from sysfs, with names that do not depend on the order of plugging
* `sysfs`: Helpers to read /sys and /dev below a root folder, which differs in tests
* `rules`: The udev rules of this project: their files, the groups that they need, and whether they are installed
* `scanning`: Take an inventory of all connected hardware
* `checks`: Checks for problems that prevent the use of this computer's hardware, with remedies
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.inventory.board import device_tree as device_tree
    from hal.inventory.board import find_board as find_board
    from hal.inventory.checks import hardware_problems as hardware_problems
    from hal.inventory.findings import HardwareProblem as HardwareProblem
    from hal.inventory.findings import Inventory as Inventory
    from hal.inventory.findings import SerialFinding as SerialFinding
    from hal.inventory.findings import UsbFinding as UsbFinding
    from hal.inventory.rules import INSTALLED_RULES as INSTALLED_RULES
    from hal.inventory.rules import rule_groups as rule_groups
    from hal.inventory.rules import shipped_rules as shipped_rules
    from hal.inventory.scanning import take_inventory as take_inventory
    from hal.inventory.serial_port import is_stable as is_stable
    from hal.inventory.serial_port import serial_port_paths as serial_port_paths
    from hal.inventory.serial_port import serial_ports as serial_ports
    from hal.inventory.sysfs import ROOT as ROOT
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "board": ["device_tree", "find_board"],
            "findings": ["HardwareProblem", "Inventory", "SerialFinding", "UsbFinding"],
            "serial_port": ["is_stable", "serial_port_paths", "serial_ports"],
            "sysfs": ["ROOT"],
            "rules": ["INSTALLED_RULES", "rule_groups", "shipped_rules"],
            "scanning": ["take_inventory"],
            "checks": ["hardware_problems"],
        },
    )
