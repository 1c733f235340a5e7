"""machine-agent: installs, updates and watches machine-server.

Only `agent.update` is built, and no program uses it yet: the update of a program as a table (docs/design/agent.md).
"""
