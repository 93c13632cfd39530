"""International bank account numbers (IBAN, ISO 13616): form, length and checksum."""

import re

_FORM = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_SEPARATORS = " .-"
_REGISTERED = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
    "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
    "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
    "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _REGISTERED.split()}
"""The length of a country's numbers, from the registry of ISO 13616."""


def has_iban_form(text: str) -> bool:
    """Whether a text has the form of an IBAN, with or without blanks."""
    return _FORM.fullmatch(_compact(text)) is not None


def is_valid(text: str) -> bool:
    """Whether a text is an IBAN whose checksum is right."""
    compact = _compact(text)
    return has_iban_form(compact) and int("".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])) % 97 == 1


def begins_with_iban(text: str) -> bool:
    """Whether a text begins with an IBAN of the length of its country; separators may part its groups."""
    length = _LENGTHS.get(text[:2].upper(), 0)
    number = ""
    for place, sign in enumerate(text):
        if sign.isascii() and sign.isalnum():
            number += sign
        elif sign not in _SEPARATORS or text[place - 1] in _SEPARATORS:
            break
        if len(number) == length:
            return is_valid(number)
    return False


def _compact(text: str) -> str:
    return text.replace(" ", "").upper()
