"""A simulated SLAM service with the map of a room."""
