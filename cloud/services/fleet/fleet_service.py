"""machine.cloud.v1.FleetService."""

from __future__ import annotations

from cloud.services.common.base import guarded
from cloud.services.fleet.jobs import FleetJobs
from cloud.services.fleet.listing import FleetLists
from cloud.services.fleet.views import FleetViews


@guarded
class FleetCalls(FleetLists, FleetJobs, FleetViews):
    """Lists of machines, their tags, jobs on many of them, and saved views."""
