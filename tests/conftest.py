"""Hypothesis for all tests: no time limits on shared machines; repeatable where a change is judged."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("judged", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("judged" if os.environ.get("CI") else "default")
