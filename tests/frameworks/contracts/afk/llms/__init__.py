"""What models say."""
