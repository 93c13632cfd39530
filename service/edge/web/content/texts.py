"""Texts on pages, in which hidden and look-alike characters are visible."""

from markupsafe import Markup, escape

from sayso.core.text.invisible import Piece
from sayso.core.text.summaries import collapse

_ALIKE = Markup('<span class="alike" title="{name}">{text}<span class="sign">{sign}</span></span>')
_SIGN = Markup('<span class="sign{soft}" title="{name}">{sign}</span>{text}')
_DIGITS = Markup('<span class="ltr">{}</span>')


def write_text(text: str, breaks: bool = False) -> Markup:
    """Return a text as HTML, with a sign for each marked character; with `breaks`, also for line breaks and tabs."""
    return Markup("").join(map(_write_piece, collapse(text, breaks=breaks)))


def _write_piece(piece: Piece) -> Markup:
    if piece.alike:
        return _ALIKE.format(name=piece.name, text=piece.text, sign=piece.sign)
    if piece.sign:
        soft, text = (" soft", piece.text) if piece.soft else ("", "")
        return _SIGN.format(soft=soft, name=piece.name, sign=piece.sign, text=text)
    return _DIGITS.format(piece.text) if piece.digits else escape(piece.text)
