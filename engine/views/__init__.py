"""Plain data that a machine shows: its status, and data for pages and RobotService.

Public, in the order in which to read them:

* `readings`: Live readings: a watched sensor is read once a second, for all of its watchers together
* `status`: Status of a machine-server: immutable data, shared by the status page, the command line and RPC
* `health`: Health of a machine as one number: how much of what is configured does not work
* `source`: The interface that pages use to access a machine, and the plain data that they show
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.views.health import health_of as health_of
    from engine.views.health import health_word as health_word
    from engine.views.health import is_failing as is_failing
    from engine.views.readings import SensorReading as SensorReading
    from engine.views.readings import Shared as Shared
    from engine.views.source import LEVELS as LEVELS
    from engine.views.source import Field as Field
    from engine.views.source import Method as Method
    from engine.views.source import PageSource as PageSource
    from engine.views.source import Picture as Picture
    from engine.views.source import ShownEntry as ShownEntry
    from engine.views.status import ConfigProblem as ConfigProblem
    from engine.views.status import ConfigStatus as ConfigStatus
    from engine.views.status import DownloadStatus as DownloadStatus
    from engine.views.status import JobStatus as JobStatus
    from engine.views.status import MachineState as MachineState
    from engine.views.status import MachineStatus as MachineStatus
    from engine.views.status import ModuleStatus as ModuleStatus
    from engine.views.status import NodeView as NodeView
    from engine.views.status import ResourceStatus as ResourceStatus
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "readings": ["SensorReading", "Shared"],
            "status": [
                "ConfigProblem",
                "ConfigStatus",
                "DownloadStatus",
                "JobStatus",
                "MachineState",
                "MachineStatus",
                "ModuleStatus",
                "NodeView",
                "ResourceStatus",
            ],
            "health": ["health_of", "health_word", "is_failing"],
            "source": ["LEVELS", "Field", "Method", "PageSource", "Picture", "ShownEntry"],
        },
    )
