"""A small project that uses the SDK, for the checks of its types."""
