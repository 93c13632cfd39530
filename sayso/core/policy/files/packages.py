"""The optional packages that reading rules needs: agents can do without them."""

from importlib.util import find_spec
from pathlib import Path

from sayso.core.packages import install_command
from sayso.core.policy.engine import Policy
from sayso.errors import InvalidInput

PACKAGES = {
    "yaml": "pyyaml",
    "cel_expr_python": "cel-expr-python",
    "holidays": "holidays",
    "jsonschema_rs": "jsonschema-rs",
    "sqlglot": "sqlglot",
    "tzdata": "tzdata",
}
"""The modules that reading rules needs, and their packages."""


def find_missing() -> list[str]:
    """Return the packages that are not installed."""
    return [package for module, package in PACKAGES.items() if find_spec(module) is None]


def check_packages(extras: str = "policies") -> None:
    """Raise `InvalidInput`, with the extras to install, when a package is missing."""
    if missing := find_missing():
        *most, last = missing
        listed = f"{', '.join(most)} and {last}" if most else last
        raise InvalidInput(f"Reading rules needs {listed}: {install_command(extras)}", missing=missing)


def read_policy(source: Path | str) -> Policy:
    """Return the policy in a file, or a text of several lines; raises `RulebookError` or `InvalidInput`."""
    check_packages()
    from sayso.core.policy.files.reading import load_rulebook, parse_rulebook

    if isinstance(source, str) and "\n" in source:
        return parse_rulebook(source.encode(), file="policy")
    return load_rulebook(Path(source))
