"""Published calls for captured data and datasets."""
