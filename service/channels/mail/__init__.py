"""Mail: cards as messages with a link, in one thread for each item. Nothing in a mail decides."""
