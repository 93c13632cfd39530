"""An edit before it is sent: its changes, and why it was refused."""
