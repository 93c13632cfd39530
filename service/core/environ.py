"""Removal of secrets from the environment of this process."""

import ctypes
import os
from collections.abc import Collection
from pathlib import Path

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
