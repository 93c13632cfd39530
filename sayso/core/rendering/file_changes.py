"""Changes of files: a patch, a replaced text, or a whole new content."""

import re

from sayso.core.rendering.views import Call, Mark, Place, Sketch, name_several, read_text
from sayso.core.text.language import _

_PATHS = ("path", "filepath", "file", "filename", "targetfile")
_OLD = ("oldstring", "oldstr", "oldtext", "old", "oldcontent", "oldcontents", "originalcontent", "previouscontent")
_NEW = ("newstring", "newstr", "newtext", "new")
_CONTENTS = ("content", "contents", "filetext", "filecontent", "text")
_WRITES = frozenset(("write", "create", "save", "edit", "append", "overwrite", "update", "replace"))
_HUNK = re.compile(r"^(@@ |diff --git |\*\*\* )", re.MULTILINE)
_NAME = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_LINE = re.compile(r"^(?:(?P<header>@@|diff |---|\+\+\+)|(?P<added>\+)|(?P<removed>-)).*$", re.MULTILINE)


def render(call: Call) -> Sketch | None:
    """Return a change of files, with added and removed lines marked."""
    paths = call.find_texts(*_PATHS)
    patches = [leaf for leaf in call.find_texts("diff", "patch", "unifieddiff") if _HUNK.search(read_text(leaf))]
    old, contents = call.find_texts(*_OLD), call.find_texts(*_CONTENTS)
    new = call.find(*_NEW) or contents
    if patches:
        names = [read_text(leaf) for leaf in paths] or _NAME.findall(read_text(patches[0])) or [_("files")]
        body = [Place(leaf.path, "code", _mark_lines(read_text(leaf))) for leaf in patches]
        headline = _("Change %(files)s", files=name_several(names))
    elif paths and old and new:
        headline = _("Change %(files)s", files=name_several([read_text(leaf) for leaf in paths]))
        sure = len(old) == len(new) == 1  # of several nobody knows which replaces which
        body = [Place(leaf.path, "removed" if sure else "code") for leaf in old]
        body += [Place(leaf.path, "added" if sure else "code") for leaf in new]
    elif paths and contents and call.tool_words & _WRITES:
        headline = _("Write %(files)s", files=name_several([read_text(leaf) for leaf in paths]))
        body = [Place(leaf.path, "code") for leaf in contents]
    else:
        return None
    return Sketch(headline, notable=[Place(leaf.path) for leaf in paths], body=body)


def _mark_lines(text: str) -> list[Mark]:
    return [Mark(*match.span(), match.lastgroup or "") for match in _LINE.finditer(text)]
