"""`sayso policy check`: check rules on this machine, and by the desk."""

from pathlib import Path
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.screens import make_console, show, show_line
from sayso.client import administration
from sayso.client.administration import RulesChecked
from sayso.errors import InvalidInput, NotAuthenticated, Unavailable
from sayso.policy.findings import Known, find_findings
from sayso.policy.packages import check_packages, find_missing

policies = typer.Typer(help="Check, test, replay and compare rules.", no_args_is_help=True)

OfflineOption = Annotated[bool, typer.Option("--offline", help="Check only on this machine.")]


@policies.callback()
def _keep_group() -> None:
    """Keep the name `check`: typer drops the name of a group's only command."""


@policies.command("check")
def check(file: Path, offline: OfflineOption = False, json: JsonOption = False) -> None:
    """Check the rules in a file.

    No desk is required. After `sayso login`, the desk also checks reviewers and tools.
    """
    found = _check(read_raw(file), file, offline)
    if json:
        print_json(found)
    else:
        _show(file, found)
    if not found.ok:
        raise typer.Exit(1)


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
    warnings = tuple(find_findings(policy, Known()))
    return RulesChecked(ok=True, rules=len(policy.rules), version=policy.version, warnings=warnings)


def _read_text(raw: bytes, file: Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8: {error}. Save it as UTF-8.") from error


def _show(file: Path, found: RulesChecked) -> None:
    console = make_console()
    for fault in found.faults:
        console.print(show(fault, "red"))
    if found.ok:
        console.print(show_line(f"{file}: {found.rules} rules, version {found.version}."))
        for warning in found.warnings:
            console.print(show(f"warning: {warning}", "yellow"))
