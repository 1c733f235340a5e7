"""Parts of the trainer of detectors."""
