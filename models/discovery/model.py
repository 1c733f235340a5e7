"""Discovery of the hardware connected to this computer: buses, addresses, ports, cameras, controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from engine import Attributes, Discovery, DiscoveryService, Extra, model
from hal.inventory import hardware_problems, take_inventory
from models.chips.common.addresses import chips_at
from models.discovery.attributes import HardwareConfig
from models.discovery.entries import discovered_entries
from schema import ErrorKind, MachineError

COMMANDS: Final = ("inventory", "problems")


@model("rdk:builtin:hardware")
class HardwareDiscovery(DiscoveryService):
    """Returns complete entries, the most likely first if several models fit. `do_command` returns the findings
    (`{"command": "inventory"}`), or the problems that prevent their use (`{"command": "problems"}`)."""

    Config: ClassVar[type[Attributes]] = HardwareConfig

    async def discover_resources(self, *, extra: Extra = None) -> Sequence[Discovery]:
        """Search now. I2C addresses in use by a driver of the kernel or of this machine are not probed."""
        from models import BUILTIN

        findings = await take_inventory(self.hardware, scan=self._scan(extra or {}), chips_at=chips_at)
        for problem in findings.problems:
            self.log.warning(
                "part of the hardware could not be examined", subject=problem.subject, reason=problem.reason
            )
        return [entry.discovery for entry in discovered_entries(findings, BUILTIN)]

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Execute `inventory` (all findings) or `problems` (a list of subject, reason, remedy and hint)."""
        name = command.get("command")
        if name not in COMMANDS:
            raise MachineError(
                f"{self.name} has no command {name!r}",
                kind=ErrorKind.INVALID,
                remedy='use {"command": "inventory"} or {"command": "problems"}',
            )
        findings = await take_inventory(self.hardware, scan=self._scan(command), chips_at=chips_at)
        if name == "inventory":
            answer: dict[str, Any] = msgspec.to_builtins(findings)
            return answer
        return {"problems": msgspec.to_builtins(hardware_problems(findings, self.hardware.board()))}

    def _scan(self, options: Mapping[str, Any]) -> bool:
        return bool(options.get("scan", self.attributes.scan))
