"""The node that uploads captured files to the cloud. It requires the data manager, so it ends before it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from engine.planning import INTERNAL
from models.data_manager import DataManagerConfig
from nursery_graph import Node, current_node
from runtime.parts.data.capture.steering import RESTART
from runtime.parts.data.manager import BuiltinDataManager
from schema import MachineError

if TYPE_CHECKING:
    from runtime.parts.data.sync.sync import SyncSettings
    from uplink import CloudAddress

SYNC: Final = f"{INTERNAL}data-sync"


def sync_node(address: CloudAddress, config: DataManagerConfig, service: str) -> Node:
    """Return the upload node for the data manager `service`. It exists even if sync is disabled, for calls of Sync."""
    return Node(
        SYNC,
        partial(_sync, address, config, service),
        requires=frozenset({service}),
        version=(address.url, address.part, repr(config)),
        restart=RESTART,
    )


def settings_of(config: DataManagerConfig) -> SyncSettings:
    """Convert the attributes of the data manager."""
    from runtime.parts.data.sync.sync import SyncSettings

    return SyncSettings(
        interval=config.sync_interval,
        other_folders=tuple(Path(path).expanduser().absolute() for path in config.additional_sync_paths),
        minimum_age=config.file_last_modified_millis / 1000,
        simultaneous=config.maximum_num_sync_threads or max(1, (os.cpu_count() or 2) // 2),
        automatic=not config.sync_disabled,
    )


async def _sync(
    address: CloudAddress,
    config: DataManagerConfig,
    service: str,
    deps: Mapping[str, Any],
    /,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    from runtime.parts.data.sync.sync import Syncer
    from runtime.parts.data.sync.upload import Uploader

    manager = deps[service].resource
    if not isinstance(manager, BuiltinDataManager):
        raise MachineError(f"{service} cannot capture data", remedy="configure its model as rdk:builtin:builtin")
    node = current_node()
    disk = type(manager).DISK(f"uploads from {manager.store.folder}")

    def report(reason: str) -> None:
        if reason:
            node.unhealthy(reason)
        else:
            node.healthy()

    async with disk.opened(), address.channel() as channel:
        syncer = Syncer(
            manager.store,
            disk,
            Uploader(channel, address.part),
            settings_of(config),
            may_upload=lambda: manager.gate.is_open,
            report=report,
        )
        manager.syncer = syncer
        task_status.started()

        async def follow() -> None:
            while True:
                await address.contact.wait_reached()
                syncer.cloud_is_back()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow)
                await syncer.run()
        finally:
            manager.syncer = None
