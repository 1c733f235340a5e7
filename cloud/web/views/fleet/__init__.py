"""What the list of machines shows, and its filters in an address."""
