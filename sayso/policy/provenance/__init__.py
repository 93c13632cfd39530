"""Facts about where a call comes from: its run, who is behind it, and what its model calls cost."""
