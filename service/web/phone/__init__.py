"""The dashboard as an installed app, and notifications on phones."""
