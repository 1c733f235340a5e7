"""Device nodes that vanish, with real files and real notifications."""

from __future__ import annotations

from pathlib import Path

import trio
from trio.testing import wait_all_tasks_blocked

from hal.linux.nodes import identify, vanished


async def test_removing_the_node_is_noticed_and_changes_of_its_neighbours_are_not(tmp_path: Path) -> None:
    node, neighbour = tmp_path / "i2c-1", tmp_path / "null"
    node.touch()
    neighbour.touch()
    identity = identify(node)
    assert identity is not None
    done = trio.Event()

    async def wait() -> None:
        await vanished(node, identity)
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        neighbour.write_text("x")
        neighbour.unlink()
        node.write_text("x")
        node.chmod(0o600)
        await wait_all_tasks_blocked(0.01)
        assert not done.is_set()
        node.unlink()
        await done.wait()


async def test_a_replaced_node_has_vanished(tmp_path: Path) -> None:
    node, other = tmp_path / "i2c-1", tmp_path / "other"
    node.touch()
    other.touch()
    identity = identify(node)
    assert identity is not None
    other.rename(node)
    with trio.fail_after(30):
        await vanished(node, identity)


async def test_a_node_deleted_with_its_directory_has_vanished(tmp_path: Path) -> None:
    (tmp_path / "001").mkdir()
    node = tmp_path / "001" / "004"
    node.touch()
    identity = identify(node)
    assert identity is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(vanished, node, identity)
        await wait_all_tasks_blocked()
        node.unlink()
        node.parent.rmdir()
    assert identify(node) is None
    with trio.fail_after(30):
        await vanished(node, identity)
