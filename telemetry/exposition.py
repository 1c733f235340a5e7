"""Metrics in the text formats that Prometheus and OpenMetrics scrapers read.

A server describes what it measures as `Family` records, which cost nothing to make; `expose` turns them into text with
the official client library. That takes about 10 µs for each sample, so call it in a worker thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

MAX_SAMPLES: Final = 100_000  # of one scrape; a second of a worker thread


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all its samples.

    `name` follows the conventions of Prometheus: base units, and no `_total`, which counters get when they are written.
    Each sample has the values of `labels` in order, and its number.
    """

    kind: Literal["counter", "gauge"]
    name: str
    help: str
    samples: Sequence[tuple[tuple[str, ...], float]]
    labels: tuple[str, ...] = ()


class _Collector:
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        left = MAX_SAMPLES
        for family in self._families:
            cls = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = cls(family.name, family.help, labels=family.labels)
            for labels, value in family.samples[:left]:
                metric.add_metric(labels, value)
            left -= min(left, len(family.samples))
            yield metric


def expose(families: Iterable[Family], accept: str, *, process: bool = True) -> tuple[bytes, str]:
    """Return the text of `families` in the format that the header `accept` asks for, and its content type.

    With `process`, the standard `process_...` metrics of this process are added. Samples beyond MAX_SAMPLES are left
    out. Blocks for about 10 µs a sample.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.exposition import choose_encoder

    registry = CollectorRegistry()
    registry.register(_Collector(families))
    if process:
        ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
