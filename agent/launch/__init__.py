"""What starts the programs: the launcher, a shell script that needs neither Python nor the agent, and its links."""
