"""Encoders on digital interrupts of a board: `incremental` with two tracks, `single` with one."""
