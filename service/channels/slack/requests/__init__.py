"""What Slack sends: signatures and payloads."""
