"""Description of a task and its descendants for reports: where each of them waits."""

from __future__ import annotations

from os.path import basename

import trio

_TRIO = trio.__name__ + "."


def task_tree(task: trio.lowlevel.Task) -> tuple[str, ...]:
    """Return a line for `task` and each of its descendants: name and where it waits, indented two spaces per level.

    Walks over all frames, so it is meant for reports and not for every change.
    """
    lines: list[str] = []
    todo = [(0, task)]
    while todo:
        depth, current = todo.pop()
        lines.append(f"{'  ' * depth}{current.name} at {where(current)}")
        children = (child for nursery in current.child_nurseries for child in nursery.child_tasks)
        todo.extend((depth + 1, child) for child in sorted(children, key=lambda child: child.name, reverse=True))
    return tuple(lines)


def where(task: trio.lowlevel.Task) -> str:
    """Return the innermost place in the task's code outside Trio, and the Trio function that it awaits there."""
    place, awaited = "its first step", ""
    for frame, line in task.iter_await_frames():
        module = frame.f_globals.get("__name__", "")
        if module == trio.__name__ or module.startswith(_TRIO):
            awaited = awaited or frame.f_code.co_name
        else:
            place, awaited = f"{frame.f_code.co_name} ({basename(frame.f_code.co_filename)}:{line})", ""
    return f"{place} in trio's {awaited}" if awaited else place
