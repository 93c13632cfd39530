"""`sayso policy`: check and explain rules, print their JSON Schema, and say which versions are in force, by whom."""

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from sayso.cli.logins import connect, exchange
from sayso.cli.screens import JsonOption, format_time, make_console, print_json, print_list, show, show_line
from sayso.client import administration, rulebook
from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.clock import now_ms
from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.policy.files.packages import check_packages, find_missing, read_policy
from sayso.core.sentences.items import describe_resemblance
from sayso.errors import InvalidInput, NotAuthenticated, Unavailable
from sayso.wire.administration import Explained, RulesChecked
from sayso.wire.rulebook import VersionView

OfflineOption = Annotated[bool, typer.Option("--offline", help="Check only on this machine.")]


def check(file: Path, offline: OfflineOption = False, json: JsonOption = False) -> None:
    """Check the rules in a file.

    No desk is required. After `sayso login`, the desk also checks reviewers and tools.
    """
    report = _check(read_raw(file), file, offline)
    if json:
        print_json(report)
    else:
        console = make_console()
        for fault in report.faults:
            console.print(show(fault, "red"))
        if report.ok:
            console.print(show_line(f"{file}: {report.rules} rules, version {report.version}."))
            for warning in report.warnings:
                console.print(show(f"warning: {warning}", "yellow"))
    if not report.ok:
        raise typer.Exit(1)


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
        explanation = exchange(administration.explain_call(written, None if written is not None else call))
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


def schema() -> None:
    """Print the JSON Schema of a rules file, for editors."""
    check_packages("cli,policies")
    from sayso.core.policy.files.schema import build_rule_schema

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


def _explain_locally(call: JsonObject | None, rules: Path) -> Explained:
    if call is None:
        raise InvalidInput("Only a desk knows items. Give the call as JSON, or omit --rules.")
    check_packages("cli,policies")
    from sayso.features.whatif.explaining import TrialCall, explain
    from sayso.features.whatif.text import describe_explanation

    try:
        event = TrialCall.model_validate(call).as_event(now_ms())
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise InvalidInput(f"The call is not valid: {place}: {fault['msg']}.") from error
    return Explained.model_validate(describe_explanation(explain(read_policy(rules), event)))


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
    from sayso.core.policy.functions.lists import collect_files

    return collect_files(read_raw(file), file.parent)


def _check(raw: bytes, file: Path, offline: bool) -> RulesChecked:
    local = None
    if offline or not find_missing():
        check_packages("cli,policies")
        from sayso.core.policy.files.reading import RulebookError, parse_beside

        try:
            policy = parse_beside(raw, file)
        except RulebookError as error:
            return RulesChecked(ok=False, rules=0, version=None, faults=list(map(str, error.problems)), warnings=[])
        warnings = list(find_findings(policy, Known(now_ms=now_ms())))
        local = RulesChecked(ok=True, rules=len(policy.rules), version=policy.version, faults=[], warnings=warnings)
        if offline:
            return local
    try:
        return exchange(administration.check_rules(_read_text(raw, file), file.name, read_lists(file)))
    except (NotAuthenticated, Unavailable) as error:
        if local is None:
            check_packages("cli,policies")
            raise
        note = f"Checked on this machine only. A desk also checks reviewers and tools. {error.message}"
        make_console(error=True).print(show(note, "yellow"))
        return local


def _read_text(raw: bytes, file: Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8: {error}. Save it as UTF-8.") from error


_COLUMNS = ("version", "state", "in force since", "attested by", "file", "SHA-256")

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def attest(file: Path, json: JsonOption = False) -> None:
    """Attest exactly the bytes of a file of rules. For admins."""
    text = read_rules(file)
    version = exchange(rulebook.attest_rules(text, file.name, read_lists(file)))
    if json:
        print_json(version)
        return
    console = make_console()
    console.print(show_line(f"{file}: version {version.version}, SHA-256 {version.digest}.", width=1000))
    missing = version.needed - version.attested
    rest = f"; {missing} more needed before it takes force" if missing > 0 and not version.in_force else ""
    console.print(show_line(f"Attested by {_name_people(version)}{rest}."))


def list_versions(json: JsonOption = False) -> None:
    """List the versions of the rules, when each was in force, and who attests it."""
    versions = exchange(rulebook.LIST_VERSIONS).versions
    rows = (
        (
            *(view.version, _describe(view), format_time(view.spans[0].start) if view.spans else ""),
            *(_name_people(view), view.file, view.digest[:16]),
        )
        for view in versions
    )
    print_list(versions, json, _COLUMNS, rows, empty="No version is recorded yet.")


def show_version(version: str, json: JsonOption = False) -> None:
    """Print the text of a version; any unique begin of its name is enough."""
    with connect() as client:
        listed = client.exchange(rulebook.LIST_VERSIONS).versions
        content = client.exchange(rulebook.read_version(find_version(listed, version).version))
    if json:
        print_json(content)
    else:
        make_console().print(show(content.text.removesuffix("\n")))


def rollback(version: Annotated[str | None, typer.Argument()] = None, yes: YesOption = False) -> None:
    """Put an earlier version of the rules back in force: by default the one before. For admins.

    The version it replaces does not come back by itself. A new version takes force as usual.
    """
    with connect() as client:
        listed = client.exchange(rulebook.LIST_VERSIONS).versions
        current = next((entry for entry in listed if entry.in_force), None)
        if current is None:
            raise InvalidInput("No version is in force yet, so there is none to go back to.")
        target = find_version(listed, version) if version is not None else _find_before(listed, current)
        question = f"Put version {target.version} of {target.file} in force instead of {current.version}?"
        if not yes and not typer.confirm(question):
            raise typer.Abort
        client.exchange(rulebook.restore_version(target.version, current.version))
    make_console().print(show_line(f"Version {target.version} is in force. {current.version} is withdrawn."))


def find_version(listed: Sequence[VersionView], begin: str) -> VersionView:
    """Return the version whose name begins so; raises `InvalidInput` unless there is exactly one."""
    matches = [version for version in listed if version.version.startswith(begin)]
    if len(matches) != 1:
        raise InvalidInput(f"{len(matches) or 'No'} versions begin with {begin!r}. `sayso policy versions` lists them.")
    return matches[0]


def _find_before(listed: Sequence[VersionView], current: VersionView) -> VersionView:
    """Return the version that was in force last before the current one."""
    began = max(span.start for span in current.spans)
    spans = ((span.end, version) for version in listed for span in version.spans)
    earlier = [(end, version) for end, version in spans if end is not None and end <= began]
    if not earlier:
        raise InvalidInput("No earlier version is recorded. Move the earlier file over the one in use.")
    return max(earlier, key=lambda pair: pair[0])[1]


def _describe(version: VersionView) -> str:
    if version.in_force:
        return "in force"
    if version.withdrawn:
        return "withdrawn"
    if version.spans:
        return "earlier"
    return f"attested {version.attested} of {version.needed}" if version.needed else "never in force"


def _name_people(version: VersionView) -> str:
    return ", ".join(sorted(a.by for a in version.attestations)) or "nobody"
