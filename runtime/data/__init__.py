"""Data capture: what resources say, written to files of the published format."""
