"""The rules file, reloaded when it changes."""

from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from sayso.policy.engine import Policy
from sayso.policy.files import DEFAULT_TERMS, RulebookError, load_rulebook
from sayso.policy.words.lists import stamp
from sayso.policy.words.names import Stamp
from sayso.records.terms import RuleTerms
from service.policy.schemas import check_value

_CHECK = partial(check_value, formats=True)  # runs costly checks in the sandbox


class Rulebook:
    """The policy of a file, reloaded when it or a list's file changes.

    While a file is invalid the last valid policy stays.
    """

    def __init__(self, path: Path | None, *, terms: RuleTerms = DEFAULT_TERMS) -> None:
        self._path = path
        self._terms = terms
        self._seen: list[tuple[Path | None, Stamp]] = [(path, stamp(path))]
        self.policy = load_rulebook(path, terms=terms, check=_CHECK)
        self._seen += self.policy.stamps.items()
        self.error: RulebookError | None = None

    def refresh(self) -> Policy:
        """Return the current policy of the file, or the last valid one with the reason in `error`."""
        if self._has_changed():
            self._seen = [(self._path, stamp(self._path))]  # before the read: a change during it is seen the next time
            try:
                self.policy = load_rulebook(self._path, terms=self._terms, check=_CHECK)
                self.error = None
            except RulebookError as error:
                self.error = error
            self._seen += (self.error or self.policy).stamps.items()
        return self.policy

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
        found: dict[str, str] = {}
        if self._path is None:
            return found
        for path in self.policy.stamps:
            with suppress(OSError, UnicodeDecodeError):
                found[str(path.relative_to(self._path.parent))] = path.read_text("utf-8")
        return found

    def _has_changed(self) -> bool:
        return any(stamp(path) != seen for path, seen in self._seen)


@cache
def rulebook_of(path: Path) -> Rulebook:
    """Return this process's rulebook of a file; forks inherit its last valid policy."""
    return Rulebook(path)
