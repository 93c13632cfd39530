"""Notices: a text with a link to Discord and every other service that apprise knows."""
