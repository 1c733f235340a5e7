"""The machine's side of the cloud: where its configuration comes from, and where its logs go."""
