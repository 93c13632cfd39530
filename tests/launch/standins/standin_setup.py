"""Stand-in for the set-up: prints the password that it got."""

import os

print("set up with", os.environ.get("SAYSO_ADMIN_PASSWORD", "no password"))
