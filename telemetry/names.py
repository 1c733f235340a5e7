"""Names of loggers. They are part of the interface: `log` patterns in the document match them."""

from __future__ import annotations

from typing import Final

from schema.names import ResourceName

ROOT: Final = "rdk"
ACTIVITY: Final = f"{ROOT}.activity"
CONFIG: Final = f"{ROOT}.config"
NETWORKING: Final = f"{ROOT}.networking"
MODULES: Final = f"{ROOT}.modmanager"
RESOURCES: Final = f"{ROOT}.resource_manager"
PACKAGES: Final = f"{ROOT}.package_manager"
JOBS: Final = f"{ROOT}.job_manager"
STDERR_SUFFIX: Final = ".StdErr"
STDOUT_SUFFIX: Final = ".StdOut"


def of_resource(name: ResourceName) -> str:
    """The logger of a resource: `rdk.resource_manager.rdk:component:motor/left`."""
    return f"{RESOURCES}.{name}"


def of_module(name: str) -> str:
    """The logger of a module; its output streams log under this name with `.StdOut` and `.StdErr`."""
    return f"{MODULES}.{name}"


def of_job(name: str) -> str:
    """The logger of a job."""
    return f"{JOBS}.{name}"
