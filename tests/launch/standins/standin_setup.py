"""Stand in for the set-up: says that it ran, and what it was told."""

import os

print("set up with", os.environ.get("SAYSO_ADMIN_PASSWORD", "no password"))
