"""The web interface of machine-server: pages, JSON, live updates, health, diagnosis."""
