"""The plant: devices on the guest's buses and lines, created and changed by the host while machine-server runs.

A service of named objects. The host creates an object of any class by its import path, sets and reads its attributes,
calls its methods and drops it; `{"$": "name"}` in an argument is another object. The method `async def run(self)` of an
object runs until the object is dropped; then its method `close` is called. One JSON object per line, on standard input
and output: `python3 -m tests.hil.guest.plant`.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import importlib
import inspect
import json
import sys
import traceback
from typing import Any

import trio


@dataclasses.dataclass
class Entry:
    """An object, and the scope in which it runs."""

    thing: Any
    scope: trio.CancelScope = dataclasses.field(default_factory=trio.CancelScope)
    ended: trio.Event = dataclasses.field(default_factory=trio.Event)


class Plant:
    """The objects by name, in the order of their creation."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._entries: dict[str, Entry] = {}

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            result = await getattr(self, "do_" + request.pop("do"))(**self._resolve(request))
        except Exception as error:
            detail = "".join(traceback.format_exception(error)[-3:])
            return {"error": f"{type(error).__name__}: {error}", "detail": detail}
        return {"result": _plain(result)}

    async def do_make(self, name: str, what: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        if name in self._entries:
            raise ValueError(f"there is a {name} already")
        module, _, attribute = what.partition(":")
        thing = getattr(importlib.import_module(module), attribute)(*args, **kwargs)
        self._entries[name] = entry = Entry(thing)
        if hasattr(thing, "run"):
            await self._nursery.start(self._run, entry)
        else:
            entry.ended.set()

    async def _run(self, entry: Entry, task_status: trio.TaskStatus[None]) -> None:
        try:
            with entry.scope:
                if "task_status" in inspect.signature(entry.thing.run).parameters:
                    await entry.thing.run(task_status=task_status)
                else:
                    task_status.started()
                    await entry.thing.run()
        finally:
            entry.ended.set()

    async def do_set(self, name: str, values: dict[str, Any]) -> None:
        for attribute, value in values.items():
            getattr(self._entries[name].thing, attribute)  # a misspelled attribute is an error
            setattr(self._entries[name].thing, attribute, value)

    async def do_get(self, name: str, attribute: str) -> Any:
        return getattr(self._entries[name].thing, attribute)

    async def do_call(self, name: str, method: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        result = getattr(self._entries[name].thing, method)(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    async def do_drop(self, name: str) -> None:
        entry = self._entries.pop(name)
        entry.scope.cancel()
        await entry.ended.wait()
        if hasattr(entry.thing, "close"):
            result = entry.thing.close()
            if inspect.isawaitable(result):
                await result

    async def do_reset(self) -> None:
        for name in reversed(list(self._entries)):
            await self.do_drop(name)

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"$"}:
                return self._entries[value["$"]].thing
            if value.keys() == {"bytes"}:
                return base64.b64decode(value["bytes"])
            return {key: self._resolve(item) for key, item in value.items()}
        return [self._resolve(item) for item in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """Return a value as JSON can represent it; bytes as {"bytes": base64}."""
    if isinstance(value, bytes | bytearray):
        return {"bytes": base64.b64encode(value).decode()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


async def main() -> None:
    """Answer until standard input ends. Requests run concurrently: a waiting one does not block the others."""
    answers = trio.Lock()

    async def handle(line: bytes) -> None:
        request = json.loads(line)
        number = request.pop("id")
        answer = {"id": number, **await plant.answer(request)}
        async with answers:
            await output.send_all(json.dumps(answer).encode() + b"\n")

    output = trio.lowlevel.FdStream(sys.stdout.fileno())
    async with trio.lowlevel.FdStream(sys.stdin.fileno()) as requests, trio.open_nursery() as nursery:
        plant = Plant(nursery)
        rest = b""
        async for part in requests:
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                nursery.start_soon(handle, line)
        await plant.do_reset()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
