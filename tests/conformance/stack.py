"""Run a whole Sayso until standard input ends; started with the checkout's own Python, by tests that have another."""

import json
import sys
from pathlib import Path

from demo.stacks import running_stack


def main() -> None:
    """Start everything in the home given, print how to reach it as one line of JSON, and wait."""
    home, certificates = Path(sys.argv[1]), sys.argv[2]
    environ = {
        "SAYSO_POLICY": str(Path(__file__).parent / "policy.yaml"),
        "SAYSO_AAP_ALLOW_LOOPBACK": "true",
        "SAYSO_WORKERS": "1",
        "SSL_CERT_FILE": certificates,
    }
    with running_stack(home, environ) as stack:
        print(json.dumps({"url": stack.url, "password": stack.admin_password}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
