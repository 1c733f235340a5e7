"""Components that measure: sensors, encoders, movement sensors, power sensors, pose trackers."""
