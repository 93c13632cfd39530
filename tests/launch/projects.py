"""A small project that uses the SDK, written beside calls whose words or types are wrong."""

from pathlib import Path

SAMPLE = Path(__file__).parent / "sample"

WRONG = {
    "client.find_run(7)": 'has incompatible type "int"; expected "str"',
    'client.decide("sus_1", item, "aprove")': "expected \"Literal['approve', 'deny', 'value']\"",
    'client.waiting("open")': "expected \"Literal['pending', 'decided', 'undoable']\"",
    'client.runs("suspnded")': "incompatible type \"Literal['suspnded']\"",
    'gate(on_doubt="aks")(print)': "No overload variant",
}
"""Wrong calls by what mypy says of each."""


def write_project(folder: Path) -> Path:
    """Write the sample, and `wrong.py` with the wrong calls, into a new folder."""
    folder.mkdir()
    for source in SAMPLE.glob("[!_]*.py"):
        (folder / source.name).write_text(source.read_text().replace("tests.launch.sample.", ""))
    head = "from sayso import Client, gate\nfrom sayso.wire.items import ItemView\n\n\n"
    body = "\n".join(f"    {call}" for call in WRONG)
    (folder / "wrong.py").write_text(f"{head}def use(client: Client, item: ItemView) -> None:\n{body}\n")
    return folder
