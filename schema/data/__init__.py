"""What captured data must look like, checked in the same way where they are captured, uploaded and stored. Pure."""
