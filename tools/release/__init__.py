"""Builds release files: self-contained programs for one platform, which need no Python on the device."""
