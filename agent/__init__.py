"""machine-agent: installs, updates and watches machine-server.

There is no program yet, only its first parts: settings, the update as a table of steps, and files of the operating
system (docs/design/agent.md).
"""
