"""Learned grants: which calls teach, what is proposed after enough approvals, and what it would have allowed."""
