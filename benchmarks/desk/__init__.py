"""What the reviewer's desk costs: pages, searches, open inboxes, and the way of a decision to another browser."""
