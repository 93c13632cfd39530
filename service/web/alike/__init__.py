"""The page of alike items and its decisions."""
