"""Statements that tests execute: each once, with the functions of the cloud that executed it, and the lines reached."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, Final

from cloud.store.session import PostgresHandle
from cloud.store.sql import Value
from cloud.store.sqlite import SqliteHandle

ROOT: Final = Path(__file__).resolve().parents[3]
PLACES: Final = ("cloud/domain", "cloud/store")  # tools/check_sql.py allows SQL nowhere else
HANDLES: Final = ("cloud/store/sqlite.py", "cloud/store/session.py")
METHODS: Final = ("run", "many", "rows", "row")
HELPERS: Final = ("inserted", "counted")
_MARKS: Final = re.compile(r"\?(?:,\s*\?)+")
_PREFIX: Final = f"{ROOT}/"


@dataclass(slots=True)
class Executed:
    """A statement with the parameters of its first execution; statements that differ in numbers of marks are one."""

    text: str
    parameters: tuple[Value, ...]
    functions: set[str] = field(default_factory=set)  # such as domain.data.retention.expire
    in_sqlite: bool = False  # whether it was executed there: a few statements are for PostgreSQL alone


@dataclass(slots=True)
class Capture:
    """All statements since `installed`, and the lines of the cloud that executed one."""

    statements: dict[str, Executed] = field(default_factory=dict)
    lines: set[tuple[str, int]] = field(default_factory=set)

    def add(
        self, text: str, parameters: Sequence[Value] | None, frame: FrameType | None, *, in_sqlite: bool = True
    ) -> None:
        """Record a statement that `frame` or a function that it was called by executes; None: for no row."""
        function = ""
        while frame is not None and (path := _inside(frame)):
            self.lines.add((path, frame.f_lineno))
            if path != "cloud/store/sql.py":
                function = function or f"{path[6:-3].replace('/', '.')}.{frame.f_code.co_qualname}"
            frame = frame.f_back
        if not function or parameters is None:
            return  # a statement of a test, or one without rows
        key = " ".join(_MARKS.sub("?*", text).split())
        executed = self.statements.get(key)
        if executed is None:
            executed = self.statements[key] = Executed(text, tuple(parameters))
        executed.in_sqlite |= in_sqlite
        executed.functions.add(function.replace(".<locals>", ""))


def _inside(frame: FrameType) -> str:
    """Return the path of a frame's file if that may contain SQL; else an empty text."""
    path = frame.f_code.co_filename.removeprefix(_PREFIX)
    return path if path.startswith(PLACES) and path not in HANDLES else ""


def installed(patch: Callable[[object, str, object], None]) -> Capture:
    """Return a capture of all statements from now on; `patch` is MonkeyPatch.setattr."""
    capture = Capture()
    for handle in (SqliteHandle, PostgresHandle):
        for name in METHODS:
            patch(handle, name, _watched(getattr(handle, name), capture))
    return capture


def _watched(method: Callable[..., Any], capture: Capture) -> Callable[..., Any]:
    @wraps(method)
    def watched(handle: Any, statement: str, *parameters: Any) -> Any:
        if not _from_handle(frame := sys._getframe(1)):
            values = next(iter(parameters[0]), None) if method.__name__ == "many" else parameters
            capture.add(statement, values, frame, in_sqlite=isinstance(handle, SqliteHandle))
        return method(handle, statement, *parameters)

    return watched


def _from_handle(frame: FrameType) -> bool:
    return frame.f_code.co_filename.endswith(HANDLES)


def places() -> Iterator[tuple[str, int, int]]:
    """Yield path, first and last line of each call in the cloud that executes a statement."""
    for folder in PLACES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and _executes(node.func):
                    yield str(path.relative_to(ROOT)), node.lineno, node.end_lineno or node.lineno


def _executes(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in METHODS and isinstance(function.value, ast.Name) and function.value.id == "sql"
    return isinstance(function, ast.Name) and function.id in HELPERS
