"""Places and shapes: poses, orientations, shapes and frames."""
