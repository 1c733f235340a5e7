"""machine-agent: installs, updates and watches machine-server.

The program is not built yet, only its first parts: settings, the update as a table of steps, and files of the operating
system (docs/design/agent.md).
"""
