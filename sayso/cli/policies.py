"""`sayso policy`: check rules, explain which decides a call, and print their JSON Schema."""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from sayso.canonical_json import JsonObject, parse_json
from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.screens import make_console, show, show_line
from sayso.client import administration
from sayso.client.administration import CallExplained, RulesChecked
from sayso.clock import now_ms
from sayso.errors import InvalidInput, NotAuthenticated, Unavailable
from sayso.policy.findings import Known, find_findings
from sayso.policy.packages import check_packages, find_missing, read_policy
from sayso.sentences.items import describe_resemblance

policies = typer.Typer(help="Check, explain, test, replay and compare rules.", no_args_is_help=True)

OfflineOption = Annotated[bool, typer.Option("--offline", help="Check only on this machine.")]


@policies.command("check")
def check(file: Path, offline: OfflineOption = False, json: JsonOption = False) -> None:
    """Check the rules in a file.

    No desk is required. After `sayso login`, the desk also checks reviewers and tools.
    """
    report = _check(read_raw(file), file, offline)
    if json:
        print_json(report)
    else:
        _show(file, report)
    if not report.ok:
        raise typer.Exit(1)


@policies.command("explain")
def explain(
    call: Annotated[str, typer.Argument(help='JSON such as {"tool": "refund", "args": {}}, @FILE, or an item.')],
    rules: Annotated[Path | None, typer.Option(help="Try the rules in this file, on this machine.")] = None,
    json: JsonOption = False,
) -> None:
    """Say which rule decides a call, why, and why the others do not.

    Without --rules the desk tries its rules in force; an item is SUSPENSION or SUSPENSION/ITEM. Nothing runs.
    """
    written = _read_call(call)
    if rules is not None:
        explanation = _explain_locally(written, rules)
    else:
        with connect() as client:
            explanation = client.exchange(administration.explain_call(written, None if written is not None else call))
    if json:
        print_json(explanation)
        return
    console = make_console()
    console.print(show(f"{explanation.effect} {explanation.reason}", "bold"))
    error = f"Not evaluated: {explanation.error}" if explanation.error else ""
    for note in filter(None, (error, describe_resemblance(explanation.resembles))):
        console.print(show(note, "yellow"))
    for rule in explanation.rules:
        console.print(show(f"{rule.rule_id}: {rule.sentence}", "green" if rule.match == "decides" else ""))


@policies.command("schema")
def schema() -> None:
    """Print the JSON Schema of a rules file, for editors."""
    check_packages("cli,policies")
    from sayso.policy.analysis.rule_schema import build_rule_schema

    typer.echo(dumps(build_rule_schema(), indent=2))


def _read_call(text: str) -> JsonObject | None:
    """Return the call in a text or a file, or None for the name of an item."""
    if text.startswith("sus_"):
        return None
    if not text.startswith(("{", "@")):
        raise InvalidInput(f"{text[:80]!r} is no call. Give it as JSON, as @FILE, or as an item such as sus_019a/i1.")
    try:
        call = parse_json(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as error:
        raise InvalidInput(f"{text[1:]} cannot be read: {error.strerror}. Check its path.") from error
    if not isinstance(call, dict):
        raise InvalidInput('The call is no JSON object. Write it as {"tool": "refund", "args": {"amount": 250}}.')
    return call


def _explain_locally(call: JsonObject | None, rules: Path) -> CallExplained:
    if call is None:
        raise InvalidInput("Only a desk knows items. Give the call as JSON, or omit --rules.")
    check_packages("cli,policies")
    from sayso.policy.analysis.explaining import explain
    from sayso.policy.analysis.trials import TrialCall
    from sayso.sentences.rules import describe_explanation

    try:
        event = TrialCall.model_validate(call).as_event(now_ms())
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise InvalidInput(f"The call is not valid: {place}: {fault['msg']}.") from error
    return CallExplained.model_validate(describe_explanation(explain(read_policy(rules), event)))


def read_raw(file: Path) -> bytes:
    """Return the bytes of a file; raises `InvalidInput`."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}. Check its path and permissions.") from error


def read_rules(file: Path) -> str:
    """Return the text of a file; raises `InvalidInput`."""
    return _read_text(read_raw(file), file)


def read_lists(file: Path) -> dict[str, str]:
    """Return the texts of the files that its lists name; none where the packages that read rules are missing."""
    if find_missing():
        return {}
    from sayso.policy.words.lists import collect_files

    return collect_files(read_raw(file), file.parent)


def _check(raw: bytes, file: Path, offline: bool) -> RulesChecked:
    local = None
    if offline or not find_missing():
        check_packages("cli,policies")
        local = _check_locally(raw, file)
        if offline or not local.ok:
            return local
    try:
        with connect() as client:
            return client.exchange(administration.check_rules(_read_text(raw, file), file.name, read_lists(file)))
    except (NotAuthenticated, Unavailable) as error:
        if local is None:
            check_packages("cli,policies")
            raise
        note = f"Checked on this machine only. A desk also checks reviewers and tools. {error.message}"
        make_console(error=True).print(show(note, "yellow"))
        return local


def _check_locally(raw: bytes, file: Path) -> RulesChecked:
    from sayso.policy.files import RulebookError, parse_beside

    try:
        policy = parse_beside(raw, file)
    except RulebookError as error:
        return RulesChecked(ok=False, rules=0, faults=tuple(map(str, error.problems)))
    warnings = tuple(find_findings(policy, Known(now_ms=now_ms())))
    return RulesChecked(ok=True, rules=len(policy.rules), version=policy.version, warnings=warnings)


def _read_text(raw: bytes, file: Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8: {error}. Save it as UTF-8.") from error


def _show(file: Path, report: RulesChecked) -> None:
    console = make_console()
    for fault in report.faults:
        console.print(show(fault, "red"))
    if report.ok:
        console.print(show_line(f"{file}: {report.rules} rules, version {report.version}."))
        for warning in report.warnings:
            console.print(show(f"warning: {warning}", "yellow"))
