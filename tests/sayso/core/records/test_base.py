"""The base class of all records."""

from functools import cached_property

from sayso.core.records.base import Immutable


class _Named(Immutable):
    name: str

    @cached_property
    def letters(self) -> int:
        return len(self.name)


def test_records_are_equal_whatever_is_cached() -> None:
    plain, read, other = _Named(name="anna"), _Named(name="anna"), _Named(name="ben")
    assert read.letters == 4
    assert plain == read
    assert read == plain
    assert other not in (plain, read)
    assert read != other
