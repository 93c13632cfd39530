"""Changes of files: a patch, replaced texts, or a whole new content."""

import re
from collections.abc import Sequence

from sayso.core.rendering.views import Call, Mark, Place, Sketch, name_several, normalize, read_text
from sayso.core.text.language import _
from sayso.core.text.summaries import Leaf

_PATHS = ("path", "filepath", "file", "filename", "targetfile")
_OLD = ("oldstring", "oldstr", "oldtext", "old", "oldcontent", "oldcontents", "originalcontent", "previouscontent")
_NEW = ("newstring", "newstr", "newtext", "new")
_CONTENTS = ("content", "contents", "filetext", "filecontent", "text")
_WRITES = frozenset(("write", "create", "save", "edit", "append", "overwrite", "update", "replace"))
_EDITS = ("edits", "changes", "replacements")
_ENTRY = re.compile(r"(.+?\[[0-9]+\])(?:\.(\w+)\Z)?")
"""The path of an entry of a list, and the name of a value that stands directly in it."""

_HUNK = re.compile(r"^(@@ |diff --git |\*\*\* )", re.MULTILINE)
_NAME = re.compile(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Add|Update|Delete) File: )([^\t\n]+)", re.MULTILINE)
_LINE = re.compile(r"^(?:(?P<header>@@|diff |---|\+\+\+)|(?P<added>\+)|(?P<removed>-)).*$", re.MULTILINE)


def render(call: Call) -> Sketch | None:
    """Return a change of files, with added and removed lines marked."""
    paths = call.find_texts(*_PATHS)
    patches = [leaf for leaf in call.find_texts("diff", "patch", "unifieddiff") if _HUNK.search(read_text(leaf))]
    contents = call.find_texts(*_CONTENTS)
    replaced = _pair(call.find(*_OLD), call.find(*_NEW) or contents)
    files, edits = _list_edits(call)
    if patches:
        names = [read_text(leaf) for leaf in paths] or _NAME.findall(read_text(patches[0])) or [_("files")]
        body = [Place(leaf.path, "code", _mark_lines(read_text(leaf))) for leaf in patches]
        headline = _("Change %(files)s", files=name_several(names))
    elif (paths or files) and (replaced or edits):
        headline = _("Change %(files)s", files=name_several([read_text(leaf) for leaf in paths or files]))
        body = [*replaced, *edits]
    elif paths and contents and call.tool_words & _WRITES:
        headline = _("Write %(files)s", files=name_several([read_text(leaf) for leaf in paths]))
        body = [Place(leaf.path, "code") for leaf in contents]
    else:
        return None
    return Sketch(headline, notable=[Place(leaf.path) for leaf in paths], body=body)


def _pair(old: Sequence[Leaf], new: Sequence[Leaf]) -> list[Place]:
    """Return old texts and those that replace them; nothing without both, or if all are blank."""
    old = [leaf for leaf in old if not leaf.literal]
    if not old or not new or not any(read_text(leaf).strip() for leaf in (*old, *new)):
        return []
    sure = len(old) == len(new) == 1 and not new[0].literal  # of several nobody knows which replaces which
    removed, added = ("removed", "added") if sure else ("code", "code")
    return [*(Place(leaf.path, removed) for leaf in old), *(Place(leaf.path, added) for leaf in new)]


def _list_edits(call: Call) -> tuple[list[Leaf], list[Place]]:
    """Return the files that a list of edits names, and its values entry by entry; nothing if it replaces no text."""
    entries: dict[str, list[tuple[str, Leaf]]] = {}
    for leaf in call.find(*_EDITS):
        if entry := _ENTRY.match(leaf.path):
            entries.setdefault(entry[1], []).append((normalize(entry[2] or ""), leaf))
    files: list[Leaf] = []
    body: list[Place] = []
    replaces = False
    for values in entries.values():
        named, old, new = ([leaf for name, leaf in values if name in names] for names in (_PATHS, _OLD, _NEW))
        pair = _pair(old, new)
        replaces = replaces or bool(pair)
        files += [leaf for leaf in named if not leaf.literal]
        body += [*(Place(leaf.path) for leaf in named), *pair, *(Place(leaf.path) for _name, leaf in values)]
    return (files, body) if replaces else ([], [])


def _mark_lines(text: str) -> list[Mark]:
    return [Mark(*match.span(), match.lastgroup or "") for match in _LINE.finditer(text)]
