"""Components for images and sound: cameras, microphones, loudspeakers."""
