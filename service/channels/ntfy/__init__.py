"""ntfy: cards as notifications with a link. Nothing in a notification decides."""
