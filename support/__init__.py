"""Mechanisms shared by all programs: worker threads, watched files, side tasks, command lines, systemd."""
