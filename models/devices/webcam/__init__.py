"""Camera `webcam`: a USB camera, or any other camera that is a video device of the system."""
