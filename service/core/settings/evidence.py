"""Settings of the key file, and of the checkpoints and archived runs that leave the desk."""

import re
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

from sayso.core.key_files import read_key_file
from sayso.errors import InvalidInput
from service.core.settings.limits import Words

ARCHIVES = ("file", "s3+http", "s3+https")
SINKS = ("file", "http", "https", "otlp+http", "otlp+https", "s3+http", "s3+https")
_BUCKET = re.compile(r"/[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9._/-]*)?")


class EvidenceSettings(BaseSettings, use_attribute_docstrings=True):
    """The key file, the sinks of checkpoints and the archive; a part of `Settings`."""

    key_file: Path | None = None
    """File with keys outside of the store, made by `sayso keyfile new`: it adds MACs to records, encrypts secrets, and
    signs checkpoints and evidence. Every process reads it; nobody else may. Back it up: every record needs it."""
    checkpoints: Words = Field(default=(), repr=False)
    """Where the clock sends signed checkpoints: `file:///path`, `https://host/path` (a POST of JSON),
    `otlp+https://collector/v1/logs` or `s3+https://KEY:SECRET@host/bucket/prefix?region=eu-central-1`, with commas
    between them. Hosts of your own network must be in `SAYSO_INTERNAL_RECEIVERS`."""
    checkpoints_required_h: int | None = Field(default=None, ge=2, le=8_760)
    """Hours without a delivered checkpoint after which people's decisions are refused. Unset: never."""

    archive: str | None = Field(default=None, repr=False)
    """Where ended runs move after `SAYSO_HOT_DAYS`, out of the store: `file:///path`, the same folder for service and
    workers, or `s3+https://KEY:SECRET@host/bucket/prefix?region=eu-central-1`. They are readable there until
    `SAYSO_KEEP_TRAIL_DAYS`; `SAYSO_KEEP_RUNS_DAYS` no longer counts. Unset: nowhere."""
    hot_days: int = Field(default=30, ge=1, le=36_500)
    """Days after its end at which a run moves to `SAYSO_ARCHIVE`."""

    @field_validator("archive", mode="after")
    @classmethod
    def _check_archive(cls, archive: str | None) -> str | None:
        parts = urlsplit(archive or "")
        if archive is None or (parts.scheme == "file" and not parts.netloc and len(parts.path) > 1):
            return archive
        whole = parts.hostname and parts.username and parts.password and _BUCKET.fullmatch(parts.path)
        if parts.scheme not in ARCHIVES or not whole:
            raise ValueError("write file:///var/lib/sayso/archive, or s3+https://KEY:SECRET@host/bucket/prefix")
        return archive

    @field_validator("key_file", mode="after")
    @classmethod
    def _check_key_file(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        path = path.absolute()
        try:
            read_key_file(path)
        except InvalidInput as error:
            raise ValueError(error.message.rstrip(".")) from error
        return path

    @field_validator("checkpoints", mode="after")
    @classmethod
    def _check_sinks(cls, sinks: tuple[str, ...]) -> tuple[str, ...]:
        for place, sink in enumerate(sinks, start=1):
            parts = urlsplit(sink)
            if parts.scheme not in SINKS:
                raise ValueError(f"sink {place} begins with '{parts.scheme}'; there are {', '.join(SINKS)}")
            if bool(parts.hostname) is (parts.scheme == "file"):
                raise ValueError(f"sink {place} has no place; write file:///var/lib/sayso/checkpoints.jsonl or a URL")
            whole = parts.username and parts.password and _BUCKET.fullmatch(parts.path)
            if parts.scheme.startswith("s3+") and not whole:
                raise ValueError(f"sink {place} is no bucket; write s3+https://KEY:SECRET@host/bucket/prefix")
        return sinks

    @model_validator(mode="after")
    def _check_evidence(self) -> Self:
        if self.checkpoints and self.key_file is None:
            raise ValueError("SAYSO_CHECKPOINTS needs SAYSO_KEY_FILE; `sayso keyfile new` makes a key that signs them")
        if self.checkpoints_required_h is not None and not self.checkpoints:
            raise ValueError("SAYSO_CHECKPOINTS_REQUIRED_H needs SAYSO_CHECKPOINTS; name a sink, or leave it out")
        return self
