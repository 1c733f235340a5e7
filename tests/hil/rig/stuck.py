"""Describe what a test is waiting for after it exceeded its time limit."""

from __future__ import annotations

from collections.abc import Iterator

import trio
from trio.lowlevel import Task


def waits() -> str:
    """Return the location of every waiting task, in the frames of the tests' own code."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    lines = []
    for task in _tasks(root):
        frames = [(frame.f_code.co_filename, number) for frame, number in task.iter_await_frames()]
        ours = [f"    {name}:{number}" for name, number in frames if "/tests/" in name]
        if ours and task is not trio.lowlevel.current_task():
            lines += [f"{task.name} waits in", *ours]
    return "\n".join(lines)


def _tasks(task: Task) -> Iterator[Task]:
    yield task
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield from _tasks(child)
