"""Programs that measure ratios against named peers in one run; see docs/performance.md."""
