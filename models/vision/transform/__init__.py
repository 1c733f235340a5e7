"""Camera `transform`: images of another camera, cropped, resized, rotated, or with results of vision services."""
