"""Mechanisms shared by all programs: worker threads, watched files, side tasks, command lines, systemd.

Public, in the order in which to read them:

* `changes`: Wake tasks at each change of something: an event that occurs again and again
* `channels`: Recording of a test: named channels of numbers over time
* `command_line`: Go-style command lines: long options with one or two dashes, `-ftdc=false`, and boolean options
  without a value
* `concurrency`: Run calls concurrently, and raise errors of nurseries without exception groups
* `delays`: Delays between attempts
* `exclusion`: A lock of threads that work together most of the time: many hold it together, or one alone
* `program_version`: Version of the installed programs, which is the same for all of them
* `rate`: Token bucket
* `start`: Start of a program: signals that arrive before it can stop in order, and imports of its large modules
* `systemd`: Messages to the service manager that started this program: readiness, status, stopping and the watchdog
* `worker`: Threads that run blocking calls one after the other, awaited from Trio
* `worker_windows`: A thread that writes to a descriptor which may block, for programs whose system cannot tell whether
  it would
* `plot`: Plots of channels over time as SVG: axes with round numbers, units, a legend
* `side_tasks`: A background task for async generators: its failure ends the current or next wait without cancelling the
  consumer
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.changes import ChangeSignal as ChangeSignal
    from support.channels import PlottedQuantity as PlottedQuantity
    from support.channels import Recorder as Recorder
    from support.channels import to_csv as to_csv
    from support.command_line import AbsolutePath as AbsolutePath
    from support.command_line import LongOptions as LongOptions
    from support.command_line import ProgramPath as ProgramPath
    from support.command_line import switch_option as switch_option
    from support.command_line import value_option as value_option
    from support.concurrency import gather as gather
    from support.concurrency import raised_alone as raised_alone
    from support.concurrency import ungrouped as ungrouped
    from support.concurrency import unwrap as unwrap
    from support.delays import DoublingDelay as DoublingDelay
    from support.delays import doubled as doubled
    from support.exclusion import Exclusion as Exclusion
    from support.plot import Panel as Panel
    from support.plot import panels_of as panels_of
    from support.plot import render_plot as render_plot
    from support.program_version import version as version
    from support.rate import Bucket as Bucket
    from support.side_tasks import SideTask as SideTask
    from support.side_tasks import side_task as side_task
    from support.start import STOP_SIGNALS as STOP_SIGNALS
    from support.start import held_signal as held_signal
    from support.start import hold_signals as hold_signals
    from support.start import lean_imports as lean_imports
    from support.start import release_signals as release_signals
    from support.systemd import ServiceManager as ServiceManager
    from support.worker import CLOSING_LIMIT as CLOSING_LIMIT
    from support.worker import HangingCallError as HangingCallError
    from support.worker import RunBlocking as RunBlocking
    from support.worker import Worker as Worker
    from support.worker import run_once as run_once
    from support.worker_windows import ThreadedWriter as ThreadedWriter
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "changes": ["ChangeSignal"],
            "channels": ["PlottedQuantity", "Recorder", "to_csv"],
            "command_line": ["AbsolutePath", "LongOptions", "ProgramPath", "switch_option", "value_option"],
            "concurrency": ["gather", "raised_alone", "ungrouped", "unwrap"],
            "delays": ["DoublingDelay", "doubled"],
            "exclusion": ["Exclusion"],
            "program_version": ["version"],
            "rate": ["Bucket"],
            "start": ["STOP_SIGNALS", "held_signal", "hold_signals", "lean_imports", "release_signals"],
            "systemd": ["ServiceManager"],
            "worker": ["CLOSING_LIMIT", "HangingCallError", "RunBlocking", "Worker", "run_once"],
            "worker_windows": ["ThreadedWriter"],
            "plot": ["Panel", "panels_of", "render_plot"],
            "side_tasks": ["SideTask", "side_task"],
        },
    )
