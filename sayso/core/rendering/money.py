"""Payments: amount, currency, from, to and reference, with checks of account numbers (IBAN, ISO 13616)."""

import re
from collections.abc import Iterator
from decimal import Decimal

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.rendering.views import SEVERE, Call, Flag, Mark, Place, Sketch, normalize, read_text, shorten
from sayso.core.text.ibans import has_iban_form, is_valid
from sayso.core.text.language import _, find_numbers
from sayso.core.text.numbers import write_number
from sayso.core.text.summaries import Leaf, list_values

_LAST_NAME = re.compile(r"([^.\[\]]+)(?:\[\d+\])*$")


def check_accounts(call: Call) -> Iterator[Flag]:
    """Yield a flag for each argument that is called an IBAN and is none."""
    for leaf in call.leaves.values():
        name = _LAST_NAME.search(leaf.path)
        if name is not None and "iban" in normalize(name[1]) and not leaf.literal and leaf.text != '""':
            account = read_text(leaf)
            if not is_valid(account):
                sentence = _("%(name)s is not a valid IBAN: the checksum of %(account)s is wrong.")
                named = {"name": shorten(leaf.path), "account": shorten(account)}
                yield Flag(sentence % named, SEVERE, _("wrong IBAN"))


def mark_fours(text: str) -> list[Mark]:
    """Return marks that part an IBAN in groups of four."""
    if " " in text or not has_iban_form(text):
        return []
    return [Mark(place, min(place + 4, len(text)), "four") for place in range(0, len(text), 4)]


AMOUNTS = ("amount", "sum", "total", "totalamount", "transferamount", "refundamount", "paymentamount")
CURRENCIES = ("currency", "currencycode", "ccy")
TO = ("to", "recipient", "receiver", "payee", "beneficiary", "creditor", "payeename", "beneficiaryname", "toaccount")
TO_ALSO = ("iban", "recipientiban", "customer", "customername", "vendor", "destination")
_FROM = ("from", "fromaccount", "source", "sourceaccount", "debtor", "sender", "accountid", "account")
_REFERENCES = ("reference", "ref", "orderid", "invoiceid", "invoice", "subject", "memo")
_VERBS = frozenset(
    ("pay", "payment", "payout", "refund", "transfer", "charge", "donate", "withdraw", "deposit", "money")
)
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,8})?")  # numbers that are read exactly; longer ones only name something
_CURRENCY = re.compile(r"[A-Za-z]{3}")
_MINOR_UNIT = re.compile(r"\b(cents?|pence|minor|smallest|centimes|pennies)\b", re.IGNORECASE)
_WITHOUT_DECIMALS = frozenset(("CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF", "XPF"))


def render(call: Call) -> Sketch | None:
    """Return a payment with exactly one amount, which is not in a minor unit such as cents."""
    amounts = [leaf for leaf in call.find(*AMOUNTS) if NUMBER.fullmatch(read_text(leaf))]
    currencies = [leaf for leaf in _find_currencies(call) if _CURRENCY.fullmatch(leaf.text)]
    pays = bool(call.tool_words & _VERBS)
    if len(amounts) != 1 or len(currencies) > 1 or not (currencies or pays) or _is_minor(call):
        return None
    (amount,) = amounts
    to, sources, references = call.find(*TO, *TO_ALSO), call.find(*_FROM), call.find_texts(*_REFERENCES)
    effect = write_amount(read_text(amount), currencies[0].text.upper()) if currencies else ""
    headline = f"{call.title} {effect or write_number(Decimal(read_text(amount)))}"
    faulty = _("%(name)s %(account)s has the form of an IBAN, but its checksum is wrong.")
    return Sketch(
        headline=_("%(payment)s to %(who)s", payment=headline, who=shorten(read_text(to[0]))) if to else headline,
        notable=[_place(leaf) for leaf in (amount, *currencies, *to, *sources)],
        body=[_place(leaf) for leaf in references],
        flags=[
            Flag(faulty % {"name": shorten(leaf.path), "account": shorten(leaf.text)}, label=_("wrong IBAN"))
            for leaf in (*to, *sources)
            if not leaf.literal and has_iban_form(read_text(leaf)) and not is_valid(read_text(leaf))
        ],
        effect=effect,
    )


def write_amount(number: str, currency: str) -> str:
    """Return an amount with its currency and at least its decimals, as the language in use writes it."""
    decimals = len(number.partition(".")[2])
    return place_currency(write_number(Decimal(number), max(decimals, decimals_of(currency))), currency)


def place_currency(number: str, currency: str) -> str:
    """Return a written number with its currency, if there is one: `EUR 4,890.00`, in German `4.890,00 EUR`."""
    if not currency:
        return number
    return f"{currency} {number}" if find_numbers().currency_first else f"{number} {currency}"


def decimals_of(currency: str) -> int:
    """Return how many decimals an amount has at least."""
    return 0 if currency in _WITHOUT_DECIMALS else 2


def write_sum(number: Decimal, currency: str) -> str:
    """Return a sum, with its currency if there is one."""
    return write_amount(str(number), currency) if currency else write_number(number.normalize())


def name_currency(values: JsonObject) -> str:
    """Return the currency that exactly one key of an object names, such as `EUR`; empty without one."""
    codes = {
        str(value).upper()
        for key, value in values.items()
        if normalize(key) in CURRENCIES and isinstance(value, str) and _CURRENCY.fullmatch(value) is not None
    }
    return codes.pop() if len(codes) == 1 else ""


def lacking_decimals(number: str, currency: str) -> str:
    """Return what a number lacks of the decimals of its currency: `.00`, `0` or nothing."""
    point, lacking = "" if "." in number else find_numbers().point, 2 - len(number.partition(".")[2])
    return "" if currency in _WITHOUT_DECIMALS or lacking < 1 else f"{point}{'0' * lacking}"


def is_amount(key: str, number: str) -> bool:
    """Return whether a key names an amount of money, and the text is a plain number."""
    return normalize(key) in AMOUNTS and NUMBER.fullmatch(number) is not None


def names_minor_unit(schema: JsonObject) -> bool:
    """Return whether a schema describes a minor unit such as cents anywhere."""
    return _MINOR_UNIT.search(canonical_json(schema).decode()) is not None


def _find_currencies(call: Call) -> list[Leaf]:
    inside: list[Leaf] = []
    for key, value in call.args.items():
        if normalize(key) in AMOUNTS and isinstance(value, dict):
            named = [name for name in value if normalize(name) in CURRENCIES]
            inside += [leaf for name in named for leaf in list_values({key: {name: value[name]}})]
    return [*call.find(*CURRENCIES), *inside]


def _is_minor(call: Call) -> bool:
    properties = call.schema.get("properties")
    described = properties if isinstance(properties, dict) else {}
    return any(_MINOR_UNIT.search(str(described.get(key, ""))) for key in call.args if normalize(key) in AMOUNTS)


def _place(leaf: Leaf) -> Place:
    return Place(leaf.path, marks=() if leaf.literal else mark_fours(read_text(leaf)))
