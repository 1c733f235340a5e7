"""Vision service `color_detector`: detects regions of one color, without an ML model."""
