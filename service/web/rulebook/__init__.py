"""Pages about rules: the rules in force, a call tried on them, and a draft tried on recorded calls."""
