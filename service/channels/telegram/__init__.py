"""Telegram: cards as messages of a bot in private chats, and decisions by buttons and replies."""
