"""The rules file, reloaded when it changes."""

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from sayso.core.policy.engine import Policy
from sayso.core.policy.files.reading import (
    DEFAULT_TERMS,
    RulebookError,
    load_rulebook,
    parse_beside,
    parse_rulebook,
    read_bytes,
)
from sayso.core.policy.functions.lists import collect_files, pick_file, stamp
from sayso.core.policy.functions.names import Stamp
from sayso.core.records.terms import RuleTerms
from sayso.errors import InvalidInput
from service.core.policy.schemas import check_value
from service.core.store.rules import RuleVersion, digest_files

_LOG = structlog.get_logger(__name__)
_CHECK = partial(check_value, formats=True)  # runs costly checks in the sandbox


class RuleSource(NamedTuple):
    """The bytes of a policy, the file that had them, and the texts of the files that its lists name."""

    file: str
    raw: bytes
    lists: Mapping[str, str] = MappingProxyType({})

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes of all files."""
        return digest_files(self.raw, self.lists)


class Rulebook:
    """The policy of a file, reloaded when it or a list's file changes.

    While a file is invalid the last valid policy stays.
    """

    def __init__(self, path: Path | None, *, terms: RuleTerms = DEFAULT_TERMS) -> None:
        self._path = path
        self._terms = terms
        self._seen: list[tuple[Path | None, Stamp]] = [(path, stamp(path))]
        self.source = RuleSource(str(path or ""), b"")
        self.policy = self._load()
        self._seen += self.policy.stamps.items()
        self.error: RulebookError | None = None

    def refresh(self) -> Policy:
        """Return the current policy of the file, or the last valid one with the reason in `error`."""
        if self._has_changed():
            fault = self.error
            self._seen = [(self._path, stamp(self._path))]  # before the read: a change during it is seen the next time
            try:
                self.policy = self._load()
                self.error = None
            except RulebookError as error:
                self.error = error
            self._seen += (self.error or self.policy).stamps.items()
            if self.error is not None and fault is None:
                _LOG.error("rules_held", file=str(self._path), held=self.policy.version, error=self.error.message)
            elif self.error is None and fault is not None:
                _LOG.info("rules_held_no_longer", file=str(self._path), version=self.policy.version)
        return self.policy

    def is_held(self) -> bool:
        """Return whether the file is invalid now, so that its last valid policy stays."""
        self.refresh()
        return self.error is not None

    def _load(self) -> Policy:
        """Return the policy, and keep the bytes that it was parsed from."""
        if self._path is None:
            return load_rulebook(None, terms=self._terms)
        raw = read_bytes(self._path)
        lists: dict[str, str] = {}
        policy = parse_beside(raw, self._path, terms=self._terms, check=_CHECK, texts=lists)
        self.source = RuleSource(str(self._path), raw, lists)
        return policy

    def read_source(self) -> tuple[Path, bytes] | None:
        """Return the file and its bytes; None without a file, or while it differs from the policy."""
        if self._path is None or self.error is not None:
            return None
        try:
            raw = self._path.read_bytes()
        except OSError:
            return None
        return None if self._has_changed() else (self._path, raw)

    def read_lists(self) -> dict[str, str]:
        """Return the texts of the files of lists by their names in the rules, without those that cannot be read."""
        return collect_files(self.source.raw, self._path.parent) if self._path is not None else {}

    def _has_changed(self) -> bool:
        return any(stamp(path) != seen for path, seen in self._seen)


def parse_version(version: RuleVersion) -> Policy:
    """Return the rules of a version as saved, or parsed anew where an earlier Sayso wrote them otherwise.

    Raises `InvalidInput` where this version of Sayso cannot read them.
    """
    try:
        policy = Policy.model_validate_json(version.rules)
        if policy.version == version.version:
            return policy
    except ValidationError:
        pass  # parsed from its bytes
    try:
        return parse_rulebook(version.text.encode(), file=version.file, read_list=pick_file(version.lists))
    except RulebookError as error:
        raise InvalidInput(f"This version of Sayso cannot read these rules: {error.message}") from error


@cache
def rulebook_of(path: Path) -> Rulebook:
    """Return this process's rulebook of a file; forks inherit its last valid policy."""
    return Rulebook(path)
