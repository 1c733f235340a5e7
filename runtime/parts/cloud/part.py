"""The cloud part of machine-server: nodes that upload logs and keep the certificate up to date."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final, cast

import trio

from nursery_graph import Node, Restart
from runtime.engine.part import PartContext
from runtime.engine.planning.node_names import INTERNAL
from runtime.parts.cloud.link import CloudLink
from schema.document.machine import MachineDocument
from uplink.upload import upload

QUEUE: Final = f"{INTERNAL}cloud-log-queue"
CERTIFICATE: Final = f"{INTERNAL}cloud-certificate"
UPLOAD: Final = f"{INTERNAL}cloud-logs"
RESTART: Final = Restart(intensity=1_000_000, max_delay=30.0)


class CloudPart:
    """Queues log entries on disk and uploads them, and keeps the certificate of the cloud up to date."""

    def __init__(self, context: PartContext) -> None:
        self._link = cast("CloudLink | None", context.cloud)
        self._changed = context.changed

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return the same nodes for every document; none if the machine was started without a cloud."""
        if self._link is None:
            return []
        if self._link.certificate is not None:
            self._link.certificate.configured(_names(document))
        return [
            Node(QUEUE, self._run_queue, restart=RESTART),
            Node(UPLOAD, self._upload, requires={QUEUE}, restart=RESTART),
            *([Node(CERTIFICATE, self._certify, restart=RESTART)] if self._link.certificate is not None else []),
        ]

    async def _run_queue(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        assert self._link is not None
        async with self._link.worker.opened():
            await self._link.sink.run(task_status=task_status)

    async def _certify(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        link = self._link
        assert link is not None
        assert link.certificate is not None
        await link.certificate.follow(link.worker, self._changed, task_status=task_status)

    async def _upload(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        assert self._link is not None
        task_status.started()
        await upload(self._link.sink, self._link.address)


def _names(document: MachineDocument) -> Hashable:
    """Return the configuration that determines the machine's host names."""
    network, cloud = document.network, document.cloud
    cloud_names = (cloud.location_id, cloud.primary_org_id, cloud.fqdn) if cloud is not None else ()
    return (network.fqdn, network.bind_address, *cloud_names)
