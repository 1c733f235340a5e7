"""Diagnosis of the running process: use of time and memory, stacks of tasks."""
