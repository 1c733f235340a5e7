"""All tasks of the event loop as a tree, each with the stack of what it awaits."""

from __future__ import annotations

from pathlib import PurePath

import trio


def task_stacks(root: trio.lowlevel.Task | None = None) -> str:
    """Text: a line for each task, its frames below it, outermost first; children are indented. From the root on."""
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
