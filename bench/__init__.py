"""Benchmarks. Each measures ratios to named peers in one run; see docs/performance.md."""
