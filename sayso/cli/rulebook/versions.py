"""`sayso policy attest`, `versions` and `rollback`: which rules are in force, and by whom."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json, print_list
from sayso.cli.policies import read_lists, read_rules
from sayso.cli.screens import format_time, make_console, show, show_line
from sayso.client import rulebook
from sayso.client.rulebook import VersionView
from sayso.errors import InvalidInput

_COLUMNS = ("version", "state", "in force since", "attested by", "file", "SHA-256")

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def attest(file: Path, json: JsonOption = False) -> None:
    """Attest exactly the bytes of a file of rules. For admins."""
    text = read_rules(file)
    with connect() as client:
        version = client.exchange(rulebook.attest_rules(text, file.name, read_lists(file)))
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
    with connect() as client:
        versions = client.exchange(rulebook.LIST_VERSIONS).versions
    rows = (
        (view.version, _describe(view), _write_since(view), _name_people(view), view.file, view.digest[:16])
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


def _write_since(version: VersionView) -> str:
    return format_time(version.spans[0].start) if version.spans else ""


def _name_people(version: VersionView) -> str:
    return ", ".join(sorted(a.by for a in version.attestations)) or "nobody"
