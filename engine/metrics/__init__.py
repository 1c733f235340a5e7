"""Metrics of a machine: its process, the network, its calls.

Public, in the order in which to read them:

* `history`: The recent course of a machine's own statistics for plots: an hour in fine steps, a day and a week in
  coarse ones
* `system`: Reads metrics of processes and of the network from small files in /proc; missing files are skipped
* `prometheus`: Metrics of a machine in Prometheus format: `GET /metrics`
* `sample`: A sample of all metrics of a machine, by dotted name
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.metrics.history import History as History
    from engine.metrics.prometheus import families as families
    from engine.metrics.sample import CUMULATIVE as CUMULATIVE
    from engine.metrics.sample import UNITS as UNITS
    from engine.metrics.sample import Sampler as Sampler
    from engine.metrics.system import measure_host as measure_host
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "history": ["History"],
            "system": ["measure_host"],
            "prometheus": ["families"],
            "sample": ["CUMULATIVE", "UNITS", "Sampler"],
        },
    )
