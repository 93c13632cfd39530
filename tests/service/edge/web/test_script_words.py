"""The sentences of scripts in other languages."""

import json
import re
from html import unescape

import pytest

from service.core.settings import Settings
from service.edge.web.languages import COOKIE, list_languages, list_script_messages, write_script_words
from tests.languages import list_catalogues, read_catalogue
from tests.service.edge.web.sites import visit


def test_list_script_messages_finds_both_kinds() -> None:
    messages = list_script_messages()
    assert "Keyboard shortcuts" in messages
    assert ("%(num)s change", "%(num)s changes") in messages


@pytest.mark.parametrize("code", [code for code in list_languages() if code != "en"])
def test_write_script_words_translates_every_message(code: str) -> None:
    words = json.loads(write_script_words(code))
    assert words.keys() == {one if isinstance(one, str) else one[0] for one in list_script_messages()}
    assert all(words.values())
    assert words["%(num)s change"] == ["%(num)s Änderung", "%(num)s Änderungen"]


def test_catalogues_have_the_two_forms_that_scripts_know() -> None:
    assert {read_catalogue(path).plural_forms for path in list_catalogues()} == {"nplurals=2; plural=(n != 1);"}


async def test_page_carries_the_words_of_its_language_only(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert 'name="words"' not in await anna.read("/")
        anna.client.cookies.set(COOKIE, "de")
        (content,) = re.findall(r'<meta name="words" content="([^"]*)">', await anna.read("/"))
        assert unescape(content) == write_script_words("de")
