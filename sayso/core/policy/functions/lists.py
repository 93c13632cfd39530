"""Named lists and constants at the top of a rules file, which its rules share. A list may be a file of its own."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from sayso.core.policy.files.yaml_documents import Document, read_document
from sayso.core.policy.functions import MOST_ENTRY_CHARS, Names, Scalar, Stamp
from sayso.core.policy.functions.reading import Reading, WordFault, read_words, suggest
from sayso.errors import InvalidInput

MOST_NAMES = 100
MOST_ENTRIES = 10_000
MOST_FILE_BYTES = 1_048_576
_INTEGERS = 2**63
_TOO_LARGE = "conditions compare no integer of more than 64 bits; write a text in quotes"

_NAMING = ("tool", "agent")  # the keys of a rule that may name a list
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RESERVED = re.compile(
    "as|break|const|continue|else|false|for|function|if|import|in|let|loop|namespace|null|package|return|true|var|void|while"
)

ReadList = Callable[[str], bytes]
"""Return the bytes of a list's file by its name in the rules; raises `InvalidInput`."""


class Folder:
    """Reads list files beside the rules, and notes their state before it reads each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.stamps: dict[Path, Stamp] = {}

    def read(self, name: str) -> bytes:
        """Return the bytes of a file in the folder or below it; raises `InvalidInput`."""
        path = self._folder / name
        if not name.endswith(".txt") or Path(name).is_absolute() or not _is_inside(path, self._folder):
            raise InvalidInput(
                "a list's file ends with .txt and is in the folder of the rules or below it; move it there"
            )
        self.stamps[path] = stamp(path)
        try:
            with path.open("rb") as file:
                return file.read(MOST_FILE_BYTES + 1)
        except OSError as error:
            raise InvalidInput(f"the file cannot be read: {error.strerror}; check its path and permissions") from error


def stamp(path: Path | None) -> Stamp:
    """Return what changes when a file is written or replaced."""
    try:
        stat = path.stat() if path else None
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino) if stat else None


def refuse_files(name: str) -> bytes:
    """Refuse every list file, where the folder of the rules is unknown."""
    raise InvalidInput(f"the file {name!r} is not here; check the rules where their files are, or write the list out")


def collect_files(raw: bytes, folder: Path) -> dict[str, str]:
    """Return the texts of the files that the lists of a rules file name, by name, without those that cannot be read."""
    content = read_document(raw, "").content
    lists = content.get("lists") if isinstance(content, dict) else None
    texts: dict[str, str] = {}
    for value in lists.values() if isinstance(lists, dict) else ():
        name = value.get("file") if isinstance(value, dict) else None
        if isinstance(name, str):
            with suppress(InvalidInput, UnicodeDecodeError):
                texts[name] = Folder(folder).read(name).decode("utf-8-sig")
    return texts


def pick_file(files: Mapping[str, str]) -> ReadList:
    """Return what reads lists from texts by their names; other files are refused."""
    return lambda name: files[name].encode() if name in files else refuse_files(name)


def keep_texts(read: ReadList, texts: dict[str, str]) -> ReadList:
    """Return what reads lists, and keeps their texts by name."""

    def read_and_keep(name: str) -> bytes:
        raw = read(name)
        texts[name] = raw.decode("utf-8-sig", errors="replace")
        return raw

    return read_and_keep


def read_names(document: Document, content: dict[str, Any], read: ReadList) -> Names:
    """Return the lists and constants of a document; reports what is wrong with them."""
    lists = dict(_read_lists(document, content, read))
    constants: dict[str, Scalar] = {}
    for name, value in _list_entries(document, content, "constants"):
        if isinstance(value, dict | list):
            document.report(("constants", name), f"constants.{name}: must be a text, a number, true or false")
        elif _is_too_large(value):
            document.report(("constants", name), f"constants.{name}: {_TOO_LARGE}")
        else:
            constants[name] = value
    return Names(lists, constants)


def _is_too_large(value: JsonValue) -> bool:
    return isinstance(value, int) and not -_INTEGERS <= value < _INTEGERS


def check_rules(document: Document, rules: list[Any], names: Names) -> None:
    """Report the lists and constants that conditions name and the file does not define."""
    for index, rule in enumerate(rules):
        when = rule.get("when") if isinstance(rule, dict) else None
        try:
            reading = read_words(when) if isinstance(when, str) else Reading("")
        except WordFault:
            continue  # reported with the condition itself
        for kind in ("lists", "constants"):
            used, known = getattr(reading, kind), getattr(names, kind)
            if words := _describe_unknown(kind, used, known):
                document.report(("rules", index, "when"), f"{_label(rule, index)}when: {words}")


def resolve_rules(document: Document, rules: list[Any], names: Names) -> list[Any]:
    """Return the rules with `{in: NAME}` in `tool` and `agent` replaced by the entries of the list."""
    return [
        {key: _resolve(document, index, rule, key, names) if key in _NAMING else value for key, value in rule.items()}
        if isinstance(rule, dict)
        else rule
        for index, rule in enumerate(rules)
    ]


def _resolve(document: Document, index: int, rule: dict[str, Any], key: str, names: Names) -> Any:
    value = rule[key]
    if not isinstance(value, dict):
        return value
    name = value["in"] if value.keys() == {"in"} else None
    if isinstance(name, str) and name in names.lists:
        return list(names.lists[name])
    words = "write a name, a pattern, a list of both, or `{in: NAME}` with the name of a list"
    if isinstance(name, str):
        words = _describe_unknown("lists", [name], names.lists)
    document.report(("rules", index, key), f"{_label(rule, index)}{key}: {words}")
    return "unknown"


def _label(rule: Any, index: int) -> str:
    rule_id = rule.get("id")
    return f"rule {rule_id if isinstance(rule_id, str) else index + 1}: "


def _read_lists(
    document: Document, content: dict[str, Any], read: ReadList
) -> Iterator[tuple[str, tuple[Scalar, ...]]]:
    """Yield the lists; a faulty one is reported once, and is not unknown to the rules that name it."""
    for name, value in _list_entries(document, content, "lists"):
        entries: tuple[Scalar, ...] = ("faulty",)
        loc = ("lists", name)
        if isinstance(value, dict) and value.keys() == {"file"} and isinstance(value["file"], str):
            try:
                entries = _parse_file(read(value["file"]))
            except InvalidInput as error:
                document.report((*loc, "file"), f"lists.{name}: {error.message}")
        elif not isinstance(value, list):
            document.report(loc, f"lists.{name}: must be a list such as [a, b], or `file:` with the name of a file")
        elif any(isinstance(entry, dict | list) or entry is None for entry in value):
            document.report(loc, f"lists.{name}: an entry must be a text, a number, true or false")
        elif any(map(_is_too_large, value)):
            document.report(loc, f"lists.{name}: {_TOO_LARGE}")
        elif len(value) > MOST_ENTRIES:
            document.report(loc, f"lists.{name}: has {len(value)} entries; the limit is {MOST_ENTRIES}")
        else:
            entries = tuple(value)
        yield name, entries


def _list_entries(document: Document, content: dict[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    given = content.get(key)
    if given is None:
        return
    if not isinstance(given, dict):
        document.report((key,), f"{key}: must be a mapping of names")
        return
    if len(given) > MOST_NAMES:
        document.report((key,), f"{key}: has {len(given)} names; the limit is {MOST_NAMES}")
    for name, value in given.items():
        if value is None:
            continue  # reported as a key without a value
        if _NAME.fullmatch(name) and not _RESERVED.fullmatch(name):
            yield name, value
        else:
            words = "a name has small letters, digits and _, begins with a letter, and is no word of CEL"
            document.report((key, name), f"{key}: {words}; rename {name!r}", at_key=True)


def _parse_file(raw: bytes) -> tuple[str, ...]:
    """Return the entries of a list file, one a line; empty lines and those that begin with `#` are skipped."""
    if len(raw) > MOST_FILE_BYTES:
        raise InvalidInput(f"the file is larger than {MOST_FILE_BYTES} bytes; shorten it")
    try:
        lines = raw.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidInput("the file is not UTF-8; save it as UTF-8") from error
    entries = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    if not entries:
        raise InvalidInput("the file has no entry; add one, or write `[]` for an empty list")
    if len(entries) > MOST_ENTRIES or max(map(len, entries)) > MOST_ENTRY_CHARS:
        limits = f"at most {MOST_ENTRIES} entries of at most {MOST_ENTRY_CHARS} characters"
        raise InvalidInput(f"the file is too long: a list has {limits}; split it")
    return entries


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):
        return False


def _describe_unknown(kind: str, names: Iterable[str], known: Mapping[str, Any]) -> str:
    """Return a message about the first name that the file does not define; empty if it defines all."""
    unknown = next((name for name in names if name not in known), None)
    if unknown is None:
        return ""
    hint = suggest(unknown, known) if known else "add it"
    return f"there is no {unknown!r} in `{kind}:` at the top of the file; {hint}"
