"""The tree of all tasks, each with the stack of its await."""

from __future__ import annotations

from pathlib import PurePath

import trio


def task_stacks(root: trio.lowlevel.Task | None = None) -> str:
    """Return the tree of tasks below `root` as text; without `root`, all tasks.

    Each task has a line, followed by its frames, outermost first. Child tasks are indented.
    """
    lines: list[str] = []
    start = root if root is not None else trio.lowlevel.current_root_task()
    todo = [(0, start)] if start is not None else []
    while todo:
        depth, task = todo.pop()
        indent = "    " * depth
        lines.append(f"{indent}{task.name}")
        lines += [f"{indent}  | {_place(frame.f_code.co_filename)}:{line} {frame.f_code.co_qualname}"
                  for frame, line in task.iter_await_frames()]  # fmt: skip
        children = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        todo += [(depth + 1, child) for child in sorted(children, key=lambda child: child.name, reverse=True)]
    return "\n".join(lines) + "\n"


def _place(filename: str) -> str:
    return "/".join(PurePath(filename).parts[-2:])
