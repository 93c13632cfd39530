"""Commands for key files, checkpoints and evidence."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sayso.cli.channels import read_time
from sayso.cli.logins import connect
from sayso.cli.runs import find_run_id
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.client import evidence as requests
from sayso.client.clients import Client
from sayso.core.key_files import create_key_file, read_key_file, rotate_key_file
from sayso.errors import InvalidInput
from sayso.features.evidence.checkpoints import Checkpoint, Leaf, find_public_key, find_root, read_checkpoint
from sayso.wire.evidence import MOST_HEADS, CheckpointPage, CheckpointView, HeadToCheck

_PAGE = 200
_WHOLE = 600

PathArgument = Annotated[Path, typer.Argument(help="The key file.")]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--public-key", help="A public key that `sayso keyfile show` printed; without it, the desk's."),
]

key_file = typer.Typer(help="Make the file of keys that lies outside of the store.", no_args_is_help=True)


@key_file.command("new")
def new(path: PathArgument) -> None:
    """Make a key file that you alone can read, for SAYSO_KEY_FILE."""
    create_key_file(path)
    make_console().print(show_line(f"{path} has a new key. Keep a copy where the store's backups are not."))


@key_file.command("rotate")
def rotate(path: PathArgument) -> None:
    """Put a new key first. The earlier ones stay, for what they signed."""
    rotate_key_file(path)
    make_console().print(show_line(f"{path} has a new current key. Restart the programs of Sayso."))


@key_file.command("show")
def show(path: PathArgument) -> None:
    """Print the public keys, the current one first. They are no secret."""
    require_cryptography()
    for key in read_key_file(path):
        make_console().print(show_line(f"{key.id} {find_public_key(key)}"))


def require_cryptography() -> None:
    """Raise `InvalidInput` where signatures cannot be checked."""
    if find_spec("cryptography") is None:
        raise InvalidInput("Signatures require the cryptography package. Run: pip install cryptography")


app = typer.Typer(help="List signed checkpoints, and compare a sink's file with the desk.", no_args_is_help=True)


@app.command("list")
def list_checkpoints(json: JsonOption = False) -> None:
    """List checkpoints, and what each sink has. Requires an admin or auditor."""
    with connect() as client:
        pages = list(_read_pages(client, 0))
    made = [view for page in pages for view in page.checkpoints]
    rows = ((str(view.number), format_time(view.at), str(view.size)) for view in made)
    print_list(
        made, json, ("number", "at (UTC)", "chains"), rows, empty="No checkpoint was made. Set SAYSO_CHECKPOINTS."
    )
    for sink in () if json else pages[-1].sinks:
        make_console().print(show_line(f"{sink.name} has checkpoint {sink.number} of {pages[-1].last}."))


@app.command("verify")
def verify(
    file: Annotated[Path, typer.Argument(help="A file with a checkpoint a line, as a sink received it.")],
    public_key: KeyOption = None,
) -> None:
    """Compare a sink's file with the desk: what was altered, deleted or cut since. Requires an admin or auditor."""
    require_cryptography()
    try:
        made = [read_checkpoint(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The file cannot be read: {error}. Give the file of a sink.") from error
    with connect() as client:
        first = client.exchange(requests.list_checkpoints(0, 1))
        faults = [*find_faults(made, public_key or list(first.keys.values())), *_compare(client, made)]
    console = make_console()
    for fault in faults:
        console.print(show_line(fault, "red", width=_WHOLE))
    if faults:
        raise typer.Exit(1)
    chains = len({leaf.chain for checkpoint in made for leaf in checkpoint.leaves})
    console.print(show_line(f"{len(made)} checkpoints over {chains} chains: nothing older was altered."))


def find_faults(made: Sequence[Checkpoint], keys: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the checkpoints of a file: signatures, roots, and the chain from one to the next."""
    from sayso.features.evidence.verify_evidence import is_signed

    last: Checkpoint | None = None
    for checkpoint in made:
        if last is not None and checkpoint.statement == last.statement:
            continue  # sent again after a crash
        if not is_signed(checkpoint.statement, checkpoint.signature, keys):
            yield f"Checkpoint {checkpoint.number} is not signed by a given key."
        if find_root([leaf.digest() for leaf in checkpoint.leaves]).hex() != checkpoint.root:
            yield f"Checkpoint {checkpoint.number} lists other heads than it signed."
        if last is not None and (checkpoint.number, checkpoint.before) != (last.number + 1, last.digest):
            yield (
                f"Checkpoint {checkpoint.number} does not follow checkpoint {last.number}: a line is gone or repeated."
            )
        last = checkpoint
    if not made:
        yield "The file has no checkpoint."


def _compare(client: Client, made: Sequence[Checkpoint]) -> Iterator[str]:
    latest: dict[str, tuple[Leaf, int]] = {}
    for checkpoint in made:
        for leaf in checkpoint.leaves:
            before = latest.get(leaf.chain)
            if before is not None and leaf.seq < before[0].seq:
                back = f"{leaf.chain} went back from entry {before[0].seq} to {leaf.seq}"
                yield f"{back} at checkpoint {checkpoint.number}."
            latest[leaf.chain] = leaf, checkpoint.at_ms
    held = {view.number: view for page in _read_pages(client, 0) for view in page.checkpoints}
    last = client.exchange(requests.list_checkpoints(0, 1)).last
    if made and last < made[-1].number:
        yield f"The desk has {last} checkpoints, the file {made[-1].number}: the store was put back to an older state."
    for checkpoint in made:
        view: CheckpointView | None = held.get(checkpoint.number)
        if view is not None and view.statement != checkpoint.statement:
            yield f"The desk has another checkpoint {checkpoint.number}."
    heads = [
        HeadToCheck(chain=leaf.chain, seq=leaf.seq, hash=leaf.hash, at_ms=at_ms) for leaf, at_ms in latest.values()
    ]
    for start in range(0, len(heads), MOST_HEADS):
        for fault in client.exchange(requests.check_heads(heads[start : start + MOST_HEADS])).faults:
            yield f"{fault.chain}: {fault.fault}"


def _read_pages(client: Client, after: int) -> Iterator[CheckpointPage]:
    while True:
        page = client.exchange(requests.list_checkpoints(after, _PAGE))
        yield page
        if not page.checkpoints:
            return
        after = page.checkpoints[-1].number


def evidence(
    what: Annotated[
        str | None, typer.Argument(metavar="[RUN | verify]", help="A run's id, or the word verify.")
    ] = None,
    file: Annotated[Path | None, typer.Argument(help="The file to verify.")] = None,
    since: Annotated[str | None, typer.Option("--from", help="Runs that began from this date or time.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Runs that began before this date or time.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    public_key: KeyOption = None,
) -> None:
    """Write what was asked, shown and decided in a run to a signed file, or verify one. Admins and auditors write."""
    if what == "verify":
        _verify_file(file, public_key or [])
        return
    if file is not None or (what is None) is (since is None):
        raise InvalidInput(
            "Name what to do: `sayso evidence RUN`, `sayso evidence --from 2026-11-01`, or `verify FILE`."
        )
    begin = read_time(since, "--from") if since is not None else None
    end = read_time(until, "--to") if until is not None else None
    with connect() as client:
        run_id = find_run_id(client, what) if what is not None else None
        made = client.exchange(requests.make_evidence(run_id, begin, end)).text
    if output is None:
        typer.echo(made, nl=False)
        return
    try:
        output.write_text(made, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The file cannot be written: {error}. Choose another place.") from error
    make_console().print(show_line(f"Wrote {output}. Check it with: sayso evidence verify {output}"))


def _verify_file(file: Path | None, keys: list[str]) -> None:
    require_cryptography()
    from sayso.features.evidence.verify_evidence import verify_text

    try:
        text = file.read_text(encoding="utf-8") if file is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The file cannot be read: {error}. Give one of `sayso evidence`.") from error
    faults, note = verify_text(text, keys)
    for fault in faults:
        make_console().print(show_line(fault, "red", width=_WHOLE))
    if faults:
        raise typer.Exit(1)
    make_console().print(show_line(note, width=_WHOLE))
