"""Logger names. They are part of the public interface: `log` patterns in the document match them. Pure."""

from __future__ import annotations

import re
from typing import Final

from schema import ResourceName

ROOT: Final = "rdk"
ACTIVITY: Final = f"{ROOT}.activity"
CONFIG: Final = f"{ROOT}.config"
LOGS: Final = f"{ROOT}.logs"  # problems of the log itself, such as lost messages or a full disk
NETWORKING: Final = f"{ROOT}.networking"
MODULES: Final = f"{ROOT}.modmanager"
RESOURCES: Final = f"{ROOT}.resource_manager"
PACKAGES: Final = f"{ROOT}.package_manager"
JOBS: Final = f"{ROOT}.job_manager"
CARRIERS: Final = ("trio-websocket",)
"""Loggers whose debug messages are dropped: a client that follows the log would cause a new one for each message."""

STDERR_SUFFIX: Final = ".StdErr"
STDOUT_SUFFIX: Final = ".StdOut"

FULL_NAME: Final = re.compile(
    r"(?P<full>(?<![\w-])[\w-]++:(?P<type>component|service):(?P<subtype>[\w-]++)/(?P<name>[\w:-]+))"
)
"""Matches the full name of a resource anywhere in a text."""

_OF_MODULE = re.compile(rf"{re.escape(MODULES)}\.(?P<module>[^.]+)(?:\.|$)")
_OF_RESOURCE = re.compile(
    rf"{re.escape(ROOT)}\.(?:{re.escape(RESOURCES.rpartition('.')[2])}|{re.escape(MODULES.rpartition('.')[2])}\.[^.]+)"
    rf"\.{FULL_NAME.pattern}(?:\.|$)"
)


def of_resource(name: ResourceName | str) -> str:
    """Return the logger name of a resource: `rdk.resource_manager.rdk:component:motor/left`."""
    return f"{RESOURCES}.{name}"


def of_module(name: str) -> str:
    """Return the logger name of a module; its output streams log under this name with `.StdOut` and `.StdErr`."""
    return f"{MODULES}.{name}"


def of_job(name: str) -> str:
    """Return the logger name of a job."""
    return f"{JOBS}.{name}"


def subjects(logger: str) -> tuple[str, ...]:
    """Return all names of a logger that a pattern may match, its own first.

    A logger of a resource, or below it, is also matched as `rdk.components.<type>`, `rdk.components.<type>.<name>` (or
    `rdk.services...`), by the resource's full name and by its logger name; a logger of a module, or below it, also by
    the module's name.
    """
    names = [logger]
    if match := _OF_MODULE.match(logger):
        names.append(match["module"])
    if match := _OF_RESOURCE.match(logger):
        kind = f"{ROOT}.{match['type']}s.{match['subtype']}"
        names += [kind, f"{kind}.{match['name']}", match["full"], of_resource(match["full"])]
    return tuple(names)
