"""Detection of mail addresses, account and card numbers, and secret keys anywhere in a value."""

import json
import re
import unicodedata
from collections.abc import Iterator

from pydantic import JsonValue

from sayso.core.policy.functions import Uncomputable
from sayso.core.text.ibans import begins_with_iban
from sayso.core.text.lookalikes import has_stacked_accents

MOST_CHARS = 100_000  # the limit of all texts of one value together
MOST_NUMBERS = 10_000  # the limit of numbers in one value whose checksums are computed
_MAIL = re.compile(r"[\w.+%'-]@(?:[\w-]+\.)+[^\W\d_]{2,}")
_SEPARATORS = re.compile("[ ._/-]{1,3}")
"""What people write between the groups of a number; longer runs part two numbers."""
_IBAN = re.compile(r"(?:(?<![A-Z0-9])|(?<=IBAN))[A-Z]{2} ?[0-9]{2}", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]+(?: [0-9]+)*")
_SECRETS = re.compile(
    "|".join(
        (
            r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",  # AWS
            r"\bgh[pousr]_[A-Za-z0-9]{30,}",  # GitHub
            r"\bgithub_pat_[A-Za-z0-9_]{40,}",
            r"\bgl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{20,}",  # GitLab
            r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
            r"\bxapp-[0-9]-[A-Za-z0-9-]{10,}",
            r"hooks\.slack\.com/services/T[A-Za-z0-9_]+/",
            r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
            r"\bsk-[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic
            r"\bAIza[A-Za-z0-9_-]{35}",  # Google
            r"\bya29\.[A-Za-z0-9_-]{20,}",
            r"\bnpm_[A-Za-z0-9]{36}",
            r"\bpypi-AgE[A-Za-z0-9_-]{50,}",
            r"\bhf_[A-Za-z0-9]{30,}",  # Hugging Face
            r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
            r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",  # Telegram
            r"AccountKey=[A-Za-z0-9+/]{60,}",  # Azure
            r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.",  # JSON Web Token
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY",
            r"\bsayso_[a-z]{1,20}_[A-Za-z0-9_-]{20,}",
            r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,200}:[^\s/@]{1,200}@",  # a password in a URL
        )
    )
)
_CARD = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|62[0-9]{2})[0-9]{12,15}"  # Discover, UnionPay
    r"|3(?:0[0-5]|[689][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"  # Diners Club, JCB
    r"|(?:50|5[6-9]|6[0-9])[0-9]{10,17}"  # Maestro
)
_SHORTEST_CARD, _LONGEST_CARD = 12, 19
_LONGEST_IBAN = 2 * 34  # with a separator after every character


def list_scalars(value: JsonValue) -> list[JsonValue]:
    """Return all names and scalar values as texts, numbers and truth values as JSON writes them."""
    return [*_bounded(_walk(value))]


def has_mail(value: JsonValue) -> bool:
    """Whether a text holds a mail address."""
    return any("@" in text and _MAIL.search(text) for text in _list_texts(value))


def has_iban(value: JsonValue) -> bool:
    """Whether a text holds an IBAN of the right length whose checksum is right."""
    texts = (_SEPARATORS.sub(" ", text) for text in _list_texts(value))
    places = ((text, match.start()) for text in texts for match in _IBAN.finditer(text))
    return _any(begins_with_iban(text[place : place + _LONGEST_IBAN]) for text, place in places)


def has_card(value: JsonValue) -> bool:
    """Whether a text or number holds a card number: a known prefix, its length, and the Luhn checksum."""
    return _any(hit for text in _list_texts(value) for hit in _list_cards(text))


def has_secret(value: JsonValue) -> bool:
    """Whether a text holds a key in the form of a well-known service, a private key, or a password in a URL."""
    return any(_SECRETS.search(text) for text in _list_texts(value))


def is_card(digits: str) -> bool:
    """Whether digits are a card number."""
    if not _CARD.fullmatch(digits):
        return False
    doubled = [int(sign) * (1 + place % 2) for place, sign in enumerate(reversed(digits))]
    return sum(digit - 9 if digit > 9 else digit for digit in doubled) % 10 == 0


def _list_texts(value: JsonValue) -> list[str]:
    """Return all texts, also keys, with invisible characters removed and letters, digits and dashes in plain form."""
    return [text if text.isascii() else _plain(text) for text in _bounded(_walk(value))]


def _walk(value: JsonValue) -> Iterator[str]:
    nodes = [value]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            yield from node
            nodes += reversed(node.values())
        elif isinstance(node, list | tuple):
            nodes += reversed(node)
        elif node is not None:
            yield node if isinstance(node, str) else json.dumps(node)


def _bounded(texts: Iterator[str]) -> Iterator[str]:
    count = 0
    for text in texts:
        count += len(text)
        if count > MOST_CHARS:
            raise Uncomputable(f"it has more than {MOST_CHARS} characters")
        yield text


def _plain(text: str) -> str:
    if has_stacked_accents(text):
        raise Uncomputable("it has dozens of accents on one letter")
    return "".join(sign if sign.isascii() else _plain_sign(sign) for sign in unicodedata.normalize("NFKC", text))


def _plain_sign(sign: str) -> str:
    category = unicodedata.category(sign)
    if category == "Nd":
        return str(unicodedata.decimal(sign))
    return {"Cf": "", "Mn": "", "Pd": "-", "Zs": " "}.get(category, "-" if sign == "\u2212" else sign)


def _list_cards(text: str) -> Iterator[bool]:
    """Yield for each number, with separators or without, whether it is a card's."""
    for run in _DIGITS.findall(_SEPARATORS.sub(" ", text)):
        groups = run.split(" ")
        for first in range(len(groups)):
            digits = ""
            for group in groups[first:]:
                digits += group
                if len(digits) > _LONGEST_CARD:
                    break
                if len(digits) >= _SHORTEST_CARD:
                    yield is_card(digits)


def _any(hits: Iterator[bool]) -> bool:
    for count, hit in enumerate(hits):
        if hit:
            return True
        if count >= MOST_NUMBERS:
            raise Uncomputable(f"it has more than {MOST_NUMBERS} numbers")
    return False
