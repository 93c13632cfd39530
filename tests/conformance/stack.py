"""Run a Sayso until standard input ends. Tests in another environment start it with the checkout's Python."""

import json
import sys
from pathlib import Path

from demo.stacks import running_stack


def main() -> None:
    """Start Sayso in the given home, print its URL and password as JSON, and wait."""
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
