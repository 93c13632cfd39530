"""Read what other software tells of its runs, each in its own dialect, one file a dialect."""
