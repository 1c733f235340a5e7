"""Mechanisms that all programs share: worker threads, watched files, side tasks, command lines, systemd."""
