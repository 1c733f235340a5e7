"""Execution of plans: the engine, the steps of each node, and their tasks and timers."""
