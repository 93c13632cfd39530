"""Who decides for people who are absent."""

from collections.abc import Collection, Iterable

from service.core.store.directory import Absence


def find_absence(absences: Iterable[Absence], person: str, at_ms: int) -> Absence | None:
    """Return the absence of a person at a time, or None."""
    return next((absence for absence in absences if absence.person == person and absence.covers(at_ms)), None)


def find_chain(
    absences: Collection[Absence], person: str, at_ms: int, active: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return the delegates of an absent person in turn, up to the first who is present.

    Returns none for a person who is present, and where the chain ends at nobody, in a cycle or at somebody who is not
    among the `active` reviewers.
    """
    chain: list[str] = []
    current = find_absence(absences, person, at_ms)
    while current is not None:
        delegate = current.delegate
        if delegate is None or delegate in (person, *chain) or (active is not None and delegate not in active):
            return ()
        chain.append(delegate)
        current = find_absence(absences, delegate, at_ms)
    return tuple(chain)


def absent_delegate(
    absences: Collection[Absence], person: str, at_ms: int, requester: str = "", active: Collection[str] | None = None
) -> str | None:
    """Return who decides for a person at a time: the first delegate in the chain who is present.

    Returns None for a person who is present, and where the chain ends at nobody, in a cycle, at the requester or at
    somebody who is not among the `active` reviewers.
    """
    chain = find_chain(absences, person, at_ms, active)
    return chain[-1] if chain and requester not in chain else None


def list_represented(
    absences: Collection[Absence], person: str, at_ms: int, requester: str = "", active: Collection[str] | None = None
) -> list[str]:
    """Return the absent people for whom this person decides at a time, sorted."""
    absent = {absence.person for absence in absences if absence.covers(at_ms)}
    return sorted(name for name in absent if absent_delegate(absences, name, at_ms, requester, active) == person)
