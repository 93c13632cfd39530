"""Stand-in for a program that cannot start."""

raise SystemExit("the standin is broken on purpose")
