from service.edge.web.content.sorting import UNSORTED, Keys, Sorting, read_sorting

ROWS = [("b", 2), ("a", None), ("c", 1), ("d", 2)]
KEYS: Keys[tuple[str, int | None]] = {"name": lambda row: row[0], "size": lambda row: row[1]}


def names(sorting: Sorting) -> str:
    return "".join(name for name, _ in sorting.sort(ROWS, KEYS))


def test_rows_are_sorted_by_a_column_and_unknown_values_come_last() -> None:
    assert names(UNSORTED) == "bacd"
    assert names(Sorting("name")) == "abcd"
    assert names(Sorting("name", True)) == "dcba"
    assert names(Sorting("size")) == "cbda"
    assert names(Sorting("size", True)) == "bdca"


def test_link_of_a_column_turns_the_direction() -> None:
    assert read_sorting("size", KEYS).find_next("size") == "-size"
    assert read_sorting("-size", KEYS).find_next("size") == "size"
    assert read_sorting("name", KEYS).find_next("size", "-") == "-size"
    assert read_sorting("-name", KEYS).written == "-name"


def test_unknown_column_sorts_nothing() -> None:
    assert read_sorting("-odd", KEYS) == UNSORTED
    assert not read_sorting("", KEYS)
