"""The status page and the HTTP answers of machine-server: pages, JSON, live updates, health."""
