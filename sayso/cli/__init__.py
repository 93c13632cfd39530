"""Work a desk from the terminal: see what waits, decide it, follow runs, see to keys, find out what is wrong."""
