"""What channels keep in the store."""
