"""The store's Lua scripts."""

from pathlib import Path

_FOLDER = Path(__file__).parent


def read_script(name: str) -> str:
    """Return the source of the script `name`, such as `commit`."""
    return (_FOLDER / f"{name}.lua").read_text()
