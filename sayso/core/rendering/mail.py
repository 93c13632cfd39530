"""Mails: To, Cc, Bcc, subject, body and attachments, and names of hosts in Punycode that look like others."""

import re
from collections.abc import Iterator
from email.utils import getaddresses

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.views import SEVERE, Call, Flag, Place, Sketch, name_several, read_text, shorten
from sayso.core.text.invisible import write_signs
from sayso.core.text.language import _
from sayso.core.text.lookalikes import find_lookalikes
from sayso.core.text.summaries import list_texts

_LABEL = re.compile(r"(?<![A-Za-z0-9-])xn--[A-Za-z0-9-]{1,59}(?![A-Za-z0-9-])", re.IGNORECASE)


def check_hosts(args: JsonObject) -> Iterator[Flag]:
    """Yield a flag for each name in Punycode whose letters look like others, at most five."""
    pairs = dict.fromkeys(pair for text in list_texts(args) for pair in _decode_labels(text))
    alike = [(label, name) for label, name in pairs if find_lookalikes(name)]
    sentence = _("The name %(label)s stands for %(name)s, whose letters are not what they look like.")
    for label, name in alike[:5]:
        yield Flag(sentence % {"label": label, "name": write_signs(name)}, SEVERE, _("look-alike letters"))


def _decode_labels(text: str) -> Iterator[tuple[str, str]]:
    """Yield each label of a host's name that is in Punycode, and what it stands for; none that cannot be decoded."""
    for match in _LABEL.finditer(text):
        label = match[0]
        try:
            yield label, label[4:].encode().decode("punycode")
        except UnicodeError:
            continue


_TO = ("to", "recipient", "recipients", "toaddress", "toemail", "emailto", "emailaddress", "email")
_CC = ("cc", "ccrecipients")
_BCC = ("bcc", "bccrecipients", "blindcopy")
_BODY = ("body", "message", "text", "content", "html", "bodyhtml", "plaintext")


def render(call: Call) -> Sketch | None:
    """Return a mail: an address, and a subject or body."""
    to, cc, bcc = (call.find_texts(*names) for names in (_TO, _CC, _BCC))
    subjects, bodies = call.find_texts("subject", "title"), call.find_texts(*_BODY)
    addressed = any("@" in read_text(leaf) for leaf in (*to, *cc, *bcc))
    if not addressed or not (subjects or bodies):
        return None
    headline = _("Mail to %(who)s", who=name_several([read_text(leaf) for leaf in (*to, *cc, *bcc)]))
    subject = f": “{shorten(read_text(subjects[0]))}”" if subjects else ""
    sentence = _("A line break in %(name)s can add recipients or other headers.")
    broken = [leaf.path for leaf in (*to, *cc, *bcc, *subjects) if {"\n", "\r"} & {*read_text(leaf)}]
    flags = [Flag(sentence % {"name": shorten(path)}, SEVERE, _("added headers")) for path in broken]
    if bcc:
        who = name_several([read_text(leaf) for leaf in bcc])
        sentence = _("Bcc: %(who)s gets a copy that the other recipients do not see.", who=who)
        flags.insert(0, Flag(sentence, label="Bcc"))
    sentence = _("The name %(name)s is itself an address, but the mail goes to %(address)s.")
    pairs = [pair for leaf in (*to, *cc, *bcc) for pair in getaddresses([read_text(leaf)[:2_000]])]
    misnamed = [
        Flag(sentence % {"name": shorten(name), "address": shorten(address)}, SEVERE, _("name differs"))
        for name, address in pairs
        if "@" in name and name.strip().lower() != address.lower()
    ]
    return Sketch(
        headline=f"{headline}{subject}",
        notable=[Place(leaf.path) for leaf in (*bcc, *to, *cc)],
        body=[
            *(Place(leaf.path) for leaf in subjects),
            *(Place(leaf.path, "prose") for leaf in bodies),
            *(Place(leaf.path) for leaf in call.find("attachments", "attachment", "files")),
        ],
        flags=[*flags, *misnamed],
    )
