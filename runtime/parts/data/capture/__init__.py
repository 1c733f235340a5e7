"""Capture of readings: settings, collectors, and sensors that control them."""
