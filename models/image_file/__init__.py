"""Camera `image_file`: a camera that returns the content of image files."""
