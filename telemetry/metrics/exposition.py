"""Metrics in the text formats that Prometheus and OpenMetrics scrapers read.

A server describes its metrics as `Family` records, which are cheap to create; `expose` turns them into text with the
official client library. That takes about 10 µs for each sample, so call it in a worker thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

MAX_SAMPLES: Final = 100_000  # limit for one scrape, which takes about a second of a worker thread


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with all its samples.

    `name` follows the conventions of Prometheus: base units, and no suffix `_total`, which is added to counters in the
    text. Each sample has the values of `labels` in order, and its value.
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

        remaining = MAX_SAMPLES
        for family in self._families:
            cls = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = cls(family.name, family.help, labels=family.labels)
            for labels, value in family.samples[:remaining]:
                metric.add_metric(labels, value)
            remaining -= min(remaining, len(family.samples))
            yield metric


def expose(families: Iterable[Family], accept: str, *, process: bool = True) -> tuple[bytes, str]:
    """Return the text of `families` in the format that the header `accept` asks for, and its content type.

    With `process`, the standard `process_...` metrics of this process are added. Samples beyond MAX_SAMPLES are
    dropped. Blocks for about 10 µs per sample.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.exposition import choose_encoder

    registry = CollectorRegistry()
    registry.register(_Collector(families))
    if process:
        ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
