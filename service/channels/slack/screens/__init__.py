"""What people see in Slack beside cards: parts of Block Kit, modals and the Home tab."""
