"""Calls for rollouts in stages, and the task that lets them proceed."""
