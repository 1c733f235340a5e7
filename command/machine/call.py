"""`machine call`: calls a method of a resource."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from command.connection import ROBOT, Connection
from command.machine import facts
from command.output import print_json
from schema import INTERNAL_NAMESPACE
from support.text import terminal

if TYPE_CHECKING:
    from rpc.api import ApiClient, MethodInfo


async def call(client: ApiClient, connection: Connection, name: str, method: str, words: Sequence[str]) -> None:
    """Call a method of a resource and print the result. Without a method, print the available methods."""
    from rpc.api import parse_arguments

    resource = await resolve(client, name)
    if not method:
        show_methods(resource, methods_of(resource.api), connection)
        return
    methods = methods_of(resource.api, documented=False)
    method_info = methods.get(method)
    if method_info is None:
        raise click.UsageError(unknown_method(resource, method, methods))
    arguments = parse_arguments(resource.api, method, words)
    missing = [argument.name for argument in method_info.arguments if argument.name not in {"extra", *arguments}]
    if missing:
        method_info = methods_of(resource.api)[method]
        missing = [item.name for item in method_info.arguments if item.required and item.name in missing]
    if missing:
        usage_text = " ".join(usage(method_info))
        raise click.UsageError(f"{method} needs {', '.join(missing)}\n\n  machine call {name} {method} {usage_text}")
    if method_info.server_streaming:
        async with aclosing(client.stream(resource.api, resource.name, method, **arguments)) as results:
            async for result in results:
                print_json(result)
        return
    result = await client.call(resource.api, resource.name, method, **arguments)
    if connection.json:
        print_json(result)
    elif result is not None:
        click.echo(terminal.value_lines(result))


def _short_names(resource: facts.Resource) -> tuple[str, str]:
    """Return the simple and the full name of a remote's resource without the names of remotes."""
    last = resource.name.rpartition(":")[2]
    return last, f"{resource.api}/{last}"


async def resolve(client: ApiClient, name: str) -> facts.Resource:
    """Return the configured resource with this simple or full name. Raises MachineError."""
    from schema import ErrorKind, MachineError
    from schema.decoding import did_you_mean

    machine = facts.machine_of(await client.call(ROBOT, "", "get_machine_status"))
    resources = [resource for resource in machine.resources if not resource.api.startswith(f"{INTERNAL_NAMESPACE}:")]
    matches = [resource for resource in resources if name in (resource.full, resource.name)]
    if not matches:  # the last part of the name of a remote's resource
        matches = [resource for resource in resources if name in _short_names(resource)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        candidates = " or ".join(resource.full for resource in matches)
        raise MachineError(
            f"{name!r} is ambiguous: it may be {candidates}", kind=ErrorKind.INVALID, remedy="give the full name"
        )
    valid_names = [resource.full if "/" in name else resource.name for resource in resources]
    raise MachineError(
        f"no resource {name!r} is configured",
        kind=ErrorKind.NOT_FOUND,
        remedy=did_you_mean(name, valid_names) or "`machine resources` lists them",
    )


def methods_of(api: str, *, documented: bool = True) -> dict[str, MethodInfo]:
    """Return the methods of an API, in alphabetical order. Raises MachineError if the API is not published.

    Texts and defaults come from the API's base class, which takes a third of a second to load: without `documented`,
    texts are empty and no argument is required.
    """
    from rpc.api import describe

    base = None
    if documented:
        from engine import base_of
        from schema import API

        base = base_of(API.parse(api))
    methods = describe(api, base)
    return {info.name: info for info in sorted(methods, key=lambda info: info.name) if not info.deprecated}


def usage(method: MethodInfo) -> list[str]:
    """Return a usage text for each argument, such as `power_pct=NUMBER` or `[extra=MAPPING]`."""
    words = []
    for argument in method.arguments:
        kind = argument.type.partition(" {")[0].upper().replace(" ", "-")
        word = f"{argument.name}={kind}"
        words.append(word if argument.required else f"[{word}]")
    return words


def unknown_method(resource: facts.Resource, method: str, methods: dict[str, MethodInfo]) -> str:
    """Return the message for an unknown method."""
    from schema.decoding import nearest

    suggestion = nearest(method, methods)
    hint = f" (did you mean {suggestion}?)" if suggestion else ""
    lines = "\n".join(f"  {name} {' '.join(usage(info))}".rstrip() for name, info in methods.items())
    return f"{resource.full} has no method {method!r}{hint}\n\nmethods:\n{lines}"


def show_methods(resource: facts.Resource, methods: dict[str, MethodInfo], connection: Connection) -> None:
    """Print all methods with their arguments and descriptions."""
    if connection.json:
        print_json({"name": resource.full, "methods": [_as_json(info) for info in methods.values()]})
        return
    click.echo(f"{resource.full}\n")
    for info in methods.values():
        click.echo(f"  {click.style(info.name, bold=connection.colour)} {' '.join(usage(info))}".rstrip())
        doc = " ".join(info.doc.split())
        if info.server_streaming:
            doc = f"{doc} (a stream: one line of JSON for each)".strip()
        for line in textwrap.wrap(doc, 92):
            click.echo(f"      {line}")


def _as_json(info: MethodInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "doc": info.doc,
        "streaming": info.server_streaming,
        "arguments": [
            {"name": argument.name, "type": argument.type, "required": argument.required, "schema": argument.schema}
            for argument in info.arguments
        ],
    }
