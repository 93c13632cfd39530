"""Routes of what people say about items, and of files attached to them."""
