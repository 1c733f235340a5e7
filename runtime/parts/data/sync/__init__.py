"""Upload of captured files to the cloud."""
