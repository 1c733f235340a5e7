"""Background checks of a machine managed by a cloud: all at the start, then DNS and packet loss every 5 minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog
import trio

from engine import PartContext
from engine.planning import INTERNAL
from nursery_graph import Node
from rpc.access import is_loopback_name
from runtime.parts.netcheck.checks import check
from runtime.parts.netcheck.command import cloud_host
from runtime.parts.netcheck.finding import NetcheckFinding, failures
from runtime.parts.netcheck.targets import Targets, load
from schema.document import MachineDocument
from telemetry.logs.logger_names import ROOT

NODE: Final = f"{INTERNAL}network-check"
PERIOD: Final = 300.0  # seconds; reference value
REPEATED: Final = ("dns", "ping")


class NetworkChecks:
    """The part of machine-server that checks the network. Failures are logged only when they begin and end."""

    def __init__(self, context: PartContext) -> None:
        self._environment = context.environment
        self._failing: Mapping[tuple[str, str], NetcheckFinding] = {}
        self._log = structlog.get_logger(f"{ROOT}.network-checks")

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return one node if the machine is managed by a cloud on another computer."""
        host = cloud_host(document.cloud.app_address) if document.cloud is not None else ""
        if document.cloud is None or is_loopback_name(host):
            return []
        return [Node(NODE, partial(self._live, host), version=host)]

    async def _live(self, host: str, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        targets = load(self._environment, cloud=host)
        task_status.started()
        self.note(await check(targets), ())
        while True:
            await trio.sleep(PERIOD)
            await self._repeat(targets)

    async def _repeat(self, targets: Targets) -> None:
        self.note(await check(targets, only=REPEATED), REPEATED)

    def note(self, findings: Sequence[NetcheckFinding], only: Sequence[str]) -> None:
        """Log new and ended failures. `only` are the kinds of checks that were run; empty means all."""
        before = {key: finding for key, finding in self._failing.items() if not only or key[0] in only}
        others = {key: finding for key, finding in self._failing.items() if key not in before}
        now = {(finding.check, finding.target): finding for finding in failures(findings)}
        for key in now.keys() - before.keys():
            finding = now[key]
            self._log.warning(
                "a network check failed",
                check=finding.check,
                target=finding.target,
                reason=finding.detail,
                remedy=finding.remedy,
            )
        for check_name, target in before.keys() - now.keys():
            self._log.info("a network check succeeds again", check=check_name, target=target)
        self._failing = {**others, **now}
