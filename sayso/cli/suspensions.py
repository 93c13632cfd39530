"""Suspensions for a terminal. Texts stand behind a bar, so that none can pass for a line of the command line."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from sayso.cli.screens import show, show_due, show_erasure, show_json, show_line, show_state, to_ms
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.core.records.decisions import EarlierDenial
from sayso.core.rendering.renderers import name_flags, render_call
from sayso.core.rendering.views import read_text
from sayso.core.sentences import name_reviewers
from sayso.core.sentences.deadlines import describe_ago, describe_clock, write_sentence
from sayso.core.sentences.deliveries import Delivery, describe_delivery, describe_silence
from sayso.core.sentences.items import describe_person, describe_resemblance
from sayso.core.sentences.outcomes import describe_earlier_denial, describe_outcome, describe_shown
from sayso.core.text.invisible import UNCHECKED
from sayso.core.text.redaction import redact
from sayso.core.text.summaries import list_values
from sayso.errors import TooLarge
from sayso.wire.items import HoldView, ItemView, VoidedView
from sayso.wire.suspensions import RunRefView, SuspensionView, UnreadableView

SHORT = 6
_MOST_LINES = 1_000
"""The lines that any terminal keeps for scrolling back. A longer text cannot be read to its beginning."""

_BAR, _WRAPPED = "│ ", "┆ "
_WIDEST_NAME = 24
_NARROWEST = 20
_NO_NAME = Text()


@dataclass(frozen=True)
class Barred:
    """A text behind a bar that also marks where a line was wrapped, with a name before its first line."""

    text: Text
    name: Text
    indent: int = 0
    literal: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines for a terminal of this width."""
        room = max(_NARROWEST, options.max_width - self.indent - len(_BAR))
        dim, name = console.get_style("dim"), self.name
        for line in self.text.split("\n", allow_blank=True):
            fits = len(line) * 2 <= room and "\t" not in line.plain  # wrapping takes time
            pieces = [line] if fits else line.wrap(console, room, overflow="fold", tab_size=4) or [Text()]
            for place, piece in enumerate(pieces):
                yield from name.render(console)
                yield Segment(" " * (self.indent - name.cell_len))
                yield Segment("  " if self.literal else _WRAPPED if place else _BAR, dim)
                yield from piece.render(console)
                yield Segment.line()
                name = _NO_NAME


def show_barred(text: str) -> Barred:
    """Return a text of several lines behind a bar."""
    return Barred(show(text), Text())


def show_args(args: JsonObject) -> Iterator[RenderableType]:
    """Yield every leaf with its path: texts behind a bar, numbers and other literals without."""
    leaves = list_values(args) if args else []
    names = [show_line(leaf.path, "cyan", len(leaf.path) * 12) for leaf in leaves]
    indent = 1 + max((name.cell_len for name in names if name.cell_len <= _WIDEST_NAME), default=0)
    for leaf, name in zip(leaves, names, strict=True):
        fits = name.cell_len <= _WIDEST_NAME
        if not fits:
            yield Barred(name, Text())
        stored = read_text(leaf)
        text = stored if "\n" in stored else leaf.text  # without quotes, because its bar shows where it begins
        yield Barred(show(text, "blue" if leaf.literal else ""), name if fits else Text(), indent, leaf.literal)
    if not leaves:
        yield Text("no arguments", "dim")


def show_inbox(
    suspensions: Sequence[SuspensionView], unreadable: Sequence[UnreadableView], width: int
) -> RenderableType:
    """Return the open items in lines of `width`, and the records that cannot be read below them."""
    damaged = [show_line(f"{row.suspension_id} cannot be read: {row.reason}", "red", 500) for row in unreadable]
    if not suspensions:
        return Group(Text("Nothing waits.", "dim"), *damaged)
    short = shorten_ids([suspension.id for suspension in suspensions])
    lines: list[RenderableType] = []
    for suspension in suspensions:
        waiting = [item for item in suspension.items if item.outcome is None]
        for item in waiting:
            name = short[suspension.id] + (f" {item.item_id}" if len(suspension.items) > 1 else "")
            lines += _show_waiting(suspension, item, Text(f"{name:<{SHORT + 1}} ", "bold cyan"), width)
    return Group(*lines, *damaged)


def _show_waiting(suspension: SuspensionView, item: ItemView, name: Text, width: int) -> list[RenderableType]:
    args = redact(item.tool.args, None, item.terms.secrets).args
    view = render_call(item.tool.name, args)
    plain = f"{item.tool.name} {json.dumps(args, ensure_ascii=False)}"
    call = show_line(plain if view.renderer == "tree" else view.headline, width=width)
    flags = [
        Text.assemble("  ", (flag, "bold yellow"))
        for flag in name_flags(
            item.tool.name,
            view,
            doubt=item.doubt is not None,
            resembles=bool(item.resembles),
            unattended=item.terms.fallback.action == "approve",
        )
    ]
    first = Text.assemble(name, show_due(item.terms.deadline_at), *flags, "  ", call)
    second = Text.assemble(" " * name.cell_len, show_line(suspension.run.agent, "dim", width))
    if item.prompt.reason:
        second.append_text(Text(" · ", "dim")).append_text(show_line(item.prompt.reason, "dim", width))
    lines = [first, second]
    if suspension.run.claimed_title:
        claim = show_line(suspension.run.claimed_title, width=width)
        lines.append(Text.assemble(" " * name.cell_len, (f"{UNCHECKED}: ", "yellow"), claim))
    if hold := item.freeze:
        lines.append(Text.assemble(" " * name.cell_len, show_line(_describe_hold(hold), "bold yellow", width)))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return [*lines]


def _describe_hold(hold: HoldView) -> str:
    return hold.describe(describe_clock(to_ms(hold.at)))


def shorten_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return the end of each id: 6 characters, or as many as tell it from the others. They may begin with a time."""
    short: dict[str, str] = {}
    rest, length = [*ids], SHORT
    while rest:
        counts = Counter(id_[-length:] for id_ in ids)
        short |= {id_: id_[-length:] for id_ in rest if counts[id_[-length:]] == 1 or length >= len(id_)}
        rest, length = [id_ for id_ in rest if id_ not in short], length + 1
    return short


def show_suspension(suspension: SuspensionView) -> RenderableType:
    """Return everything that a reviewer needs for a decision."""
    head = Text.assemble(show_line(suspension.run.agent, "bold"), "  ", show_line(suspension.id, "dim"))
    about = Text.assemble("requested by ", show_line(suspension.run.owner), ", ", show_line(suspension.status))
    who = suspension.run.who
    proven = describe_person(who.person, who.person_name, who.issuer) if who is not None and who.person else ""
    known = [show_line(proven)] if proven else []
    maker = suspension.run.key_maker
    known += [show_line(f"The key was made by {maker}")] if maker else []
    items = (part for item in suspension.items for part in _show_item(item, suspension.run))
    erased = [show_erasure(suspension.erasure)] if suspension.erasure is not None else []
    claims: list[RenderableType] = [show_barred(suspension.run.claimed_title)] if suspension.run.claimed_title else []
    claims += show_args(suspension.run.claimed_context) if suspension.run.claimed_context else ()
    return Group(head, about, *known, *erased, *(["", Text(UNCHECKED, "yellow"), *claims] if claims else ()), *items)


def check_readable(console: Console, suspension: SuspensionView, link: str) -> None:
    """Raise `TooLarge` for an item that takes more lines than a terminal keeps."""
    lines = 0
    for segment in console.render(show_suspension(suspension)) if console.is_terminal else ():
        lines += segment.text.count("\n")
        if lines > _MOST_LINES:
            raise TooLarge(
                f"This item takes more lines than the {_MOST_LINES:,} that a terminal may keep. Nothing was decided. "
                f"Decide on its page, {link}, or read it with `sayso show {suspension.id} --secrets | less` and decide "
                "with --yes."
            )


def _show_item(item: ItemView, run: RunRefView) -> list[RenderableType]:
    parts: list[RenderableType] = ["", Text.assemble(show_line(f"{item.item_id}  {item.tool.name}", "bold cyan"))]
    view = render_call(item.tool.name, item.tool.args)
    if view.renderer != "tree":
        parts.append(show_line(view.headline, "bold"))
    if hold := item.freeze:
        parts.append(show_line(_describe_hold(hold), "bold yellow", 2_500))
    if denied := item.denied_before:
        denial = EarlierDenial.model_validate({**denied.model_dump(exclude={"at"}), "at_ms": to_ms(denied.at)})
        sentence = describe_earlier_denial(denial, run.id, run.thread_id)
        why = f": {denial.message}" if denial.message else "."
        before = write_sentence(sentence, lambda at_ms: describe_ago(at_ms, now_ms()))
        parts.append(show_line(f"{before}{why}", "bold red", 2_500))
    if item.resembles:
        parts.append(show_line(describe_resemblance(item.resembles), "bold yellow", 500))
    parts += _show_previews(item)
    parts += (show_line(f"{sentence}.", "", 500) for sentence in item.remembered)
    parts += [show_barred(text) for text in (item.prompt.title, item.prompt.body, item.prompt.reason) if text]
    parts += [Text("This call was started before and may have run.", "bold yellow")] if item.doubt is not None else []
    parts += show_args(item.tool.args)
    if item.computed:
        parts += [Text("Computed by Sayso", "bold"), *show_args(item.computed)]
    if item.assessment is not None:
        said = item.assessment.fault or item.assessment.reason
        level = f"The assessor {item.assessment.assessor} says {item.assessment.level}"
        parts.append(show_line(f"{level}: {said}" if said else f"{level}.", "bold", 500))
    parts += [show_line(flag.sentence, "bold yellow", 500) for flag in view.flags]
    parts += _show_requested_value(item) if "value" in item.allowed else []
    human = (decision for decision in item.decisions if decision.by.kind == "human")
    parts += [show_line(f"{decision.by.id}: {describe_shown(decision.shown)}") for decision in human]
    parts += (
        show_line(f"{who}: {voided.action}, which does not count: {who} {why}", "yellow")
        for voided in item.voided
        for who, why in ((voided.by.id, _name_loss(voided)),)
    )
    if item.outcome is not None:
        outcome = show_line(describe_outcome(item), "bold")
        worst = item.state.value if item.state != str(item.outcome.verdict) else ""
        parts.append(Text.assemble(show_state(worst), "; ", outcome) if worst else outcome)
        if item.permit is not None and item.permit.report is not None and item.permit.report.error:
            parts.append(show_barred(item.permit.report.error))
        parts += [show_barred(item.outcome.message)] if item.outcome.message else []
    else:
        allowed = show_line(", ".join(item.allowed))
        parts.append(Text.assemble("allowed: ", allowed, "; due ", show_due(item.terms.deadline_at)))
        parts += [*_show_stages(item), *_show_confirmer(item), *_show_step_up(item)]
        if item.number is not None:
            parts.append(show_line(f"number for the reviewer: {item.number}", "bold"))
        elif item.terms.match_number:
            parts.append(Text("an approval needs the number that the requester sees: --number"))
    return [*parts, *_show_forward(item), *_show_inquiries(item), *_show_deliveries(item)]


def _name_loss(voided: VoidedView) -> str:
    return "took it back" if voided.retracted else "saw another preview" if voided.outdated else "was deactivated"


def _show_previews(item: ItemView) -> Iterator[RenderableType]:
    """Yield what the tool says that the call would do, and with the last edit."""
    for preview in item.previews:
        yield Text("What it would do" + (", edited" if preview.args is not None else ""), "bold")
        if preview.error is not None:
            yield show_line(f"No preview: {preview.error}", "yellow", 600)
        elif isinstance(preview.content, str):
            yield show_barred(preview.content)
        else:
            yield from show_args(preview.content if isinstance(preview.content, dict) else {"rows": preview.content})
        if preview.before is not None:
            yield Text("It has changed since it was approved.", "bold yellow")
        if preview.cut:
            yield Text(f"Only the beginning of {preview.cut} is shown.", "yellow")


def _show_stages(item: ItemView) -> Iterator[RenderableType]:
    for place, stage in enumerate(item.terms.stages):
        state = "done" if place < item.terms.stage else "now" if place == item.terms.stage else "next"
        yield show_line(f"stage {place + 1}, {name_reviewers(stage.reviewers, 'or')}: {state}")
    if item.original is not None:
        yield Text("as requested, before an earlier stage changed it:", "bold")
        yield from show_args(item.original)


def _show_confirmer(item: ItemView) -> Iterator[RenderableType]:
    if item.terms.confirm_by is not None:
        waits = "must confirm it with `sayso confirm`" if item.to_confirm is not None else "confirmed it"
        yield show_line(f"{item.terms.confirm_by}, for whom the agent acts, {waits}", "bold")


def _show_step_up(item: ItemView) -> Iterator[RenderableType]:
    if item.terms.step_up is not None:
        needed = {"code": "a code of your authenticator app: --code", "passkey": "your passkey, on its page"}
        yield Text(f"an approval needs {needed[item.terms.step_up]}")


def _show_forward(item: ItemView) -> Iterator[RenderableType]:
    if item.forwarded is not None:
        yield show_line(f"{item.forwarded.by.id} forwarded it to {name_reviewers([item.forwarded.to])}", "bold")
        if item.forwarded.note:
            yield show_barred(item.forwarded.note)


def _show_inquiries(item: ItemView) -> Iterator[RenderableType]:
    for inquiry in item.inquiries:
        yield show_line(f"{inquiry.by.id} asked{' and waits for an answer' if inquiry.open else ''}:")
        yield show_barred(inquiry.text)
        if inquiry.answer is not None:
            yield Text("The requester answered · not checked", "yellow")
            yield show_barred(inquiry.answer)


def _show_deliveries(item: ItemView) -> list[RenderableType]:
    deliveries: list[Delivery] = []
    for view in item.deliveries:
        about = (view.channel, view.person, view.state, view.step, view.outcome, view.reason)
        times = (view.next_try_at, view.sent_at, view.seen_at)
        deliveries.append(Delivery(*about, *(to_ms(time) if time is not None else None for time in times)))
    silence = describe_silence(deliveries, live=item.state == "open")
    alarm = [Text(silence, "bold red")] if silence else []
    sentences = (write_sentence(describe_delivery(delivery), describe_clock) for delivery in deliveries)
    return [*alarm, *(show_line(sentence, width=500) for sentence in sentences)]


def _show_requested_value(item: ItemView) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if item.target_arg:
        parts.append(Text.assemble("the value fills ", show_line(item.target_arg)))
    if item.choices is not None:
        parts += ["one of these:", *(show_line(json.dumps(choice, ensure_ascii=False)) for choice in item.choices)]
    elif item.response_schema is not None:
        parts.append(show_json(item.response_schema))
    return parts
