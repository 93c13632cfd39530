"""Commands for webhooks: endpoints, failed messages and senders."""
