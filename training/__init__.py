"""ML training: client, job states, trainers.

Not built yet: this package holds its place among the floors (docs/design/architecture.md) and has no code.
"""
