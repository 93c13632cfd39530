"""Every message has a translation with the same named places."""

import re
from pathlib import Path

import pytest

from tests.languages import extract_messages, find_lacking, list_catalogues, list_forms, read_catalogue

_PLACE = re.compile(r"%\(\w+\)s")


@pytest.mark.parametrize("path", list_catalogues(), ids=lambda path: path.stem)
def test_catalogue_translates_every_message(path: Path) -> None:
    catalogue, messages = read_catalogue(path), extract_messages()
    unknown = {str(one.id) for one in messages} ^ {str(one.id) for one in catalogue}
    assert unknown == set(), "run make translations"
    assert find_lacking(catalogue) == []


@pytest.mark.parametrize("path", list_catalogues(), ids=lambda path: path.stem)
def test_translations_keep_the_places_of_their_message(path: Path) -> None:
    for message in read_catalogue(path):
        source = message.id if isinstance(message.id, str) else " ".join(message.id)
        for form in list_forms(message):
            assert set(_PLACE.findall(form)) <= set(_PLACE.findall(source)), source
        if isinstance(message.string, str):
            assert sorted(_PLACE.findall(message.string)) == sorted(_PLACE.findall(source)), source
