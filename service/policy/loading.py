"""The rules file, reloaded when it changes."""

from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from sayso.policy.engine import Policy
from sayso.policy.files import DEFAULT_TERMS, RulebookError, load_rulebook, parse_rulebook, read_bytes
from sayso.records.terms import RuleTerms
from service.policy.schemas import check_value

_CHECK = partial(check_value, formats=True)  # runs costly checks in the sandbox


class RuleSource(NamedTuple):
    """The bytes of a policy, and the file that had them."""

    file: str
    raw: bytes

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes."""
        return sha256(self.raw).hexdigest()


class Rulebook:
    """The policy of a file, reloaded when it changes. While the file is invalid the last valid policy stays."""

    def __init__(self, path: Path | None, *, terms: RuleTerms = DEFAULT_TERMS) -> None:
        self._path = path
        self._terms = terms
        self._seen = _stamp(path)
        self.source = RuleSource(str(path or ""), b"")
        self.policy = self._load()
        self.error: RulebookError | None = None

    def refresh(self) -> Policy:
        """Return the current policy of the file, or the last valid one with the reason in `error`."""
        seen = _stamp(self._path)  # before the read: a change during it is seen the next time
        if seen != self._seen:
            self._seen = seen
            try:
                self.policy = self._load()
                self.error = None
            except RulebookError as error:
                self.error = error
        return self.policy

    def _load(self) -> Policy:
        """Return the policy, and keep the bytes that it was parsed from."""
        if self._path is None:
            return load_rulebook(None, terms=self._terms)
        raw = read_bytes(self._path)
        policy = parse_rulebook(raw, file=str(self._path), terms=self._terms, check=_CHECK)
        self.source = RuleSource(str(self._path), raw)
        return policy

    def read_source(self) -> tuple[Path, bytes] | None:
        """Return the file and its bytes; None without a file, or while it differs from the policy."""
        if self._path is None or self.error is not None:
            return None
        try:
            raw = self._path.read_bytes()
        except OSError:
            return None
        return (self._path, raw) if _stamp(self._path) == self._seen else None


@cache
def rulebook_of(path: Path) -> Rulebook:
    """Return this process's rulebook of a file; forks inherit its last valid policy."""
    return Rulebook(path)


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None
