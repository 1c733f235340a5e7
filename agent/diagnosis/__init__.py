"""Diagnosis of a device by `machine agent check` and `machine agent bundle`. Works while the agent does not run.

Public, in the order in which to read them:

* `finding`: Results of the checks
* `checks`: The checks of `machine agent check`: one function for each, which returns a finding and never raises
* `bundle`: The archive of `machine agent bundle`: facts for support, without secrets
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.diagnosis.bundle import bundle_contents as bundle_contents
    from agent.diagnosis.bundle import write_bundle as write_bundle
    from agent.diagnosis.checks import CheckedDevice as CheckedDevice
    from agent.diagnosis.checks import run_checks as run_checks
    from agent.diagnosis.finding import Level as Level
    from agent.diagnosis.finding import findings_table as findings_table
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "finding": ["Level", "findings_table"],
            "checks": ["CheckedDevice", "run_checks"],
            "bundle": ["bundle_contents", "write_bundle"],
        },
    )
