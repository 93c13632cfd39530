"""Secrets are encrypted for the store, bound to their place, and open with every key of the file."""

from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file, read_key_file, rotate_key_file
from sayso.errors import Unreadable
from service.core.store.connection.sealing import Keyring, Sealer

PURPOSE, PLACE = "totp-seeds", ("ann",)
SECRET = "JBSWY3DPEHPK3PXP ü"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_key_file(tmp_path / "keys")
    return tmp_path / "keys"


def sealer(path: Path | None, tenant: str = "default") -> Sealer:
    return Sealer(Keyring(path), tenant)


def test_value_is_sealed_under_the_current_key_and_opens(path: Path) -> None:
    stored = sealer(path).seal(PURPOSE, SECRET, *PLACE)
    assert stored.startswith(f"sealed:v1:{read_key_file(path)[0].id}:")
    assert SECRET not in stored
    assert sealer(path).open(PURPOSE, stored, *PLACE) == sealer(path).open(PURPOSE, stored.encode(), *PLACE) == SECRET
    assert sealer(path).seal(PURPOSE, SECRET, *PLACE) != stored
    data = bytes(range(256))
    packed = sealer(path).seal_bytes(PURPOSE, data, *PLACE)
    assert data not in packed
    assert sealer(path).open_bytes(PURPOSE, packed, *PLACE) == data


def test_without_a_key_file_values_stay_and_clear_ones_open(path: Path) -> None:
    plain = sealer(None)
    assert (plain.key_id, sealer(path).key_id) == (None, read_key_file(path)[0].id)
    assert plain.seal(PURPOSE, SECRET, *PLACE) == SECRET
    assert plain.seal_bytes(PURPOSE, b"\x00", *PLACE) == b"\x00"
    assert sealer(path).open(PURPOSE, SECRET, *PLACE) == SECRET
    assert sealer(path).open_bytes(PURPOSE, b"\x00", *PLACE) == b"\x00"


@pytest.mark.parametrize(
    ("tenant", "purpose", "place"),
    [
        ("other", PURPOSE, PLACE),
        ("default", "webhook-secrets", PLACE),
        ("default", PURPOSE, ("bob",)),
        ("default", PURPOSE, ("ann", "")),
        ("default", PURPOSE, ()),
    ],
)
def test_moved_value_does_not_open(path: Path, tenant: str, purpose: str, place: tuple[str, ...]) -> None:
    stored = sealer(path).seal(PURPOSE, SECRET, *PLACE)
    with pytest.raises(Unreadable, match="altered, or copied from another place"):
        sealer(path, tenant).open(purpose, stored, *place)


def test_every_flipped_byte_and_every_cut_is_noticed(path: Path) -> None:
    """Behind the mark: without its mark, a value is not a sealed one."""
    stored, mark = sealer(path).seal_bytes(PURPOSE, SECRET.encode(), *PLACE), len("sealed:v1:")
    flipped = [
        stored[:at] + bytes([stored[at] ^ bit]) + stored[at + 1 :]
        for at in range(mark, len(stored))
        for bit in (1, 128)
    ]
    for altered in (*flipped, *(stored[:end] for end in range(mark, len(stored)))):
        with pytest.raises(Unreadable):
            sealer(path).open_bytes(PURPOSE, altered, *PLACE)
    with pytest.raises(Unreadable, match="altered"):
        sealer(path).open(PURPOSE, sealer(path).seal(PURPOSE, SECRET, *PLACE) + "*", *PLACE)


def test_rotated_file_opens_earlier_values_and_seals_with_the_first_key(path: Path) -> None:
    running = sealer(path)
    earlier = running.seal(PURPOSE, SECRET, *PLACE)
    rotate_key_file(path)
    first, second = read_key_file(path)
    later = sealer(path).seal(PURPOSE, SECRET, *PLACE)
    assert (first.id in later, second.id in earlier) == (True, True)
    assert sealer(path).open(PURPOSE, earlier, *PLACE) == SECRET
    assert running.open(PURPOSE, later, *PLACE) == SECRET, (
        "A process that began before the rotation reads the file again."
    )


def test_missing_key_is_named(path: Path, tmp_path: Path) -> None:
    stored, key = sealer(path).seal(PURPOSE, SECRET, *PLACE), read_key_file(path)[0].id
    create_key_file(tmp_path / "others")
    for other in (None, tmp_path / "others"):
        with pytest.raises(Unreadable, match=f"with the key {key}, which SAYSO_KEY_FILE does not hold") as refused:
            sealer(other).open(PURPOSE, stored, *PLACE)
        assert refused.value.facts == {"key": key}
    open_elsewhere = sealer(tmp_path / "others")
    (tmp_path / "others").unlink()
    with pytest.raises(Unreadable, match="cannot be read"):
        open_elsewhere.open(PURPOSE, stored, *PLACE)
