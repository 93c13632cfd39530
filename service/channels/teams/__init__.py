"""Microsoft Teams: Adaptive Cards of a bot with decisions, and cards with a link by a Workflows webhook."""
