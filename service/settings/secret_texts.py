"""Secrets in files of the operator: their text, or `env:NAME` for a variable of the environment."""

import os
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, SecretStr, ValidationInfo


def _resolve_secret(value: object, info: ValidationInfo) -> object:
    """Return the secret behind `env:NAME`."""
    if not isinstance(value, str) or not value.startswith("env:"):
        return value
    name = value.removeprefix("env:")
    environ: Mapping[str, str] = (info.context or {}).get("environ", os.environ)
    if not environ.get(name):
        raise ValueError(f"the environment has no variable {name}; set it, or write the secret into the file")
    return environ[name]


Secret = Annotated[SecretStr, BeforeValidator(_resolve_secret)]
"""A secret: its text, or `env:NAME`."""
