"""Names of loggers. They are part of the interface: `log` patterns in the document match them."""

from __future__ import annotations

import re
from typing import Final

from schema.names import ResourceName

ROOT: Final = "rdk"
ACTIVITY: Final = f"{ROOT}.activity"
CONFIG: Final = f"{ROOT}.config"
LOGS: Final = f"{ROOT}.logs"  # what happens to log messages themselves: lost ones, a full disk
NETWORKING: Final = f"{ROOT}.networking"
MODULES: Final = f"{ROOT}.modmanager"
RESOURCES: Final = f"{ROOT}.resource_manager"
PACKAGES: Final = f"{ROOT}.package_manager"
JOBS: Final = f"{ROOT}.job_manager"
CARRIERS: Final = ("trio-websocket",)
"""Loggers whose debug messages are left out: they tell of each message to whoever follows the log, without end."""

STDERR_SUFFIX: Final = ".StdErr"
STDOUT_SUFFIX: Final = ".StdOut"

FULL_NAME: Final = re.compile(r"(?P<full>[\w-]+:(?P<type>component|service):(?P<subtype>[\w-]+)/(?P<name>[\w:-]+))")
"""A resource's full name, wherever it stands."""

_OF_MODULE = re.compile(rf"{re.escape(MODULES)}\.(?P<module>[^.]+)(?:\.|$)")
_OF_RESOURCE = re.compile(
    rf"{re.escape(ROOT)}\.(?:{re.escape(RESOURCES.rpartition('.')[2])}|{re.escape(MODULES.rpartition('.')[2])}\.[^.]+)"
    rf"\.{FULL_NAME.pattern}(?:\.|$)"
)


def of_resource(name: ResourceName | str) -> str:
    """The logger of a resource: `rdk.resource_manager.rdk:component:motor/left`."""
    return f"{RESOURCES}.{name}"


def of_module(name: str) -> str:
    """The logger of a module; its output streams log under this name with `.StdOut` and `.StdErr`."""
    return f"{MODULES}.{name}"


def of_job(name: str) -> str:
    """The logger of a job."""
    return f"{JOBS}.{name}"


def subjects(logger: str) -> tuple[str, ...]:
    """Every name by which a pattern may mean a logger, its own first.

    A logger of a resource, or below it, is also `rdk.components.<type>`, `rdk.components.<type>.<name>` (or
    `rdk.services...`), the resource's full name and its logger; one of a module, or below it, is also the module's
    name.
    """
    names = [logger]
    if match := _OF_MODULE.match(logger):
        names.append(match["module"])
    if match := _OF_RESOURCE.match(logger):
        kind = f"{ROOT}.{match['type']}s.{match['subtype']}"
        names += [kind, f"{kind}.{match['name']}", match["full"], of_resource(match["full"])]
    return tuple(names)
