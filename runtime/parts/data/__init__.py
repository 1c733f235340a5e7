"""Data capture: readings of resources, written to files of the published format and uploaded to the cloud."""
