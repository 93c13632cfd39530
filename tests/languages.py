"""`make translations`: brings the catalogues up to date with the messages of templates, sentences and scripts.

A new message is left empty for the translator; one that nothing uses any more goes.
"""

from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from sayso.core.problems import PROBLEM_TYPES
from service.core.settings import CHECKOUT
from service.edge.web.languages import CATALOGUES, list_script_messages
from service.edge.web.sessions import EarlierSignIn

_FOLDERS = {"sayso": "python", "service": "python", "templates": "jinja2"}
_KEYWORDS = {"_": None, "gettext": None, "mark": None, "ngettext": (1, 2), "translate_count": (1, 2)}
_TRIMMED = {"trimmed": "true", "trim_blocks": "true", "lstrip_blocks": "true"}


def extract_messages() -> Catalog:
    """Return every message of the templates, sentences and scripts."""
    found = Catalog()
    for folder, method in _FOLDERS.items():
        suffix = "**.html" if method == "jinja2" else "**.py"
        options = {suffix: _TRIMMED if method == "jinja2" else {}}
        for _file, _line, message, *_rest in extract_from_dir(
            CHECKOUT / folder, [(suffix, method)], options, _KEYWORDS
        ):
            found.add(message)
    for message in list_script_messages():
        found.add(message)
    for message in list_error_messages():
        found.add(message)
    return found


def list_error_messages() -> list[str]:
    """Return the titles and the default messages of errors, which pages translate."""
    titles = [row.title for row in PROBLEM_TYPES.values()]
    return [*titles, *(kind().message for kind in (*PROBLEM_TYPES, EarlierSignIn))]


def list_catalogues() -> list[Path]:
    return sorted(CATALOGUES.glob("*.po"))


def read_catalogue(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.stem, abort_invalid=True)


def list_forms(message: Message) -> list[str]:
    """Return the translation of a message: one form, or one for each kind of number."""
    return [*message.string] if isinstance(message.string, list | tuple) else [message.string or ""]


def find_lacking(catalogue: Catalog) -> list[str]:
    """Return the messages without a translation, or without one of its forms."""
    return [str(one.id) for one in catalogue if one.id and not all(list_forms(one))]


def main() -> None:
    """Rewrite each catalogue, and print what it lacks."""
    messages = extract_messages()
    for path in list_catalogues():
        catalogue = read_catalogue(path)
        catalogue.update(messages, no_fuzzy_matching=True)
        with path.open("wb") as file:
            write_po(file, catalogue, width=0, omit_header=True, sort_output=True, ignore_obsolete=True)
        lacking = find_lacking(catalogue)
        print(f"{path.name}: {len(catalogue)} messages, {len(lacking)} to translate")


if __name__ == "__main__":
    main()
