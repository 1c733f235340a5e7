"""Installation of machine-server as a service of systemd, without machine-agent."""
