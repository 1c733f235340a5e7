"""Video of cameras over peer connections: one capture of each camera for all of its viewers, none without viewers."""
