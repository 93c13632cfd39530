"""Secret settings: which files hold them, which programs see them, and their removal from the environment.

`SAYSO_METRICS_TOKEN_FILE` names a file that holds what `SAYSO_METRICS_TOKEN` would.
"""

import ctypes
import os
from collections.abc import Collection, MutableMapping
from pathlib import Path

FILED = (
    "admin_password",
    "redis_url",
    "queue_url",
    "checkpoints",
    "archive",
    "egress_proxy",
    "model_key",
    "metrics_token",
    "webhook_secret",
)
"""Settings that a file can hold. `SAYSO_KEY_FILE` is another setting, so `SAYSO_KEY` has none."""

SECRETS = ("admin_password", "key", "metrics_token", "webhook_secret")
"""Settings that only some programs may see: tools run in workers and can read the environment."""

LARGEST_BYTES = 65_536


def file_variable_of(field: str) -> str:
    """Return the environment variable that names the file of a setting."""
    return f"SAYSO_{field.upper()}_FILE"


def read_files(environ: MutableMapping[str, str]) -> list[str]:
    """Put what the files hold into the environment, and return a sentence for each that cannot be used.

    The variables that name the files are removed, so that a program passes on only what it may.
    """
    sentences = []
    given = {name.upper() for name, value in environ.items() if value}
    for field in FILED:
        variable, name = f"SAYSO_{field.upper()}", file_variable_of(field)
        path = environ.pop(name, "")
        if path and variable in given:
            sentences.append(f"{name}: {variable} is set too. Unset one of them.")
        elif path:
            try:
                environ[variable] = _read(Path(path))
            except ValueError as fault:
                sentences.append(f"{name}: {fault} See docs/settings.md.")
    return sentences


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        text = content.decode().strip()
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}). Correct the path or the file's mode.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8. Write the value into it.") from None
    if not text or "\0" in text or len(content) > LARGEST_BYTES:
        raise ValueError(f"{path} holds no value. Write the value into it, and nothing else.")
    return text


_BEGIN, _END = 47, 48  # of the environment's memory, among the fields after the name in /proc/self/stat


def erase(names: Collection[str]) -> None:
    """Remove variables, in capitals or not, and overwrite what the kernel shows of them in `/proc/self/environ`."""
    for name in [name for name in os.environ if name.upper() in names]:
        del os.environ[name]
    try:
        stat = Path("/proc/self/stat").read_bytes()
    except OSError:  # a system without /proc
        return
    fields = stat.rpartition(b")")[2].split()
    begin, end = int(fields[_BEGIN]), int(fields[_END])
    for variable in ctypes.string_at(begin, end - begin).split(b"\0"):
        if os.fsdecode(variable.partition(b"=")[0]).upper() in names:
            ctypes.memset(begin, 0, len(variable))
        begin += len(variable) + 1
