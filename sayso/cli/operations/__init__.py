"""Commands for operators: channels and reports."""
