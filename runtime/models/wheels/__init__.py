"""Models of bases on wheels."""
