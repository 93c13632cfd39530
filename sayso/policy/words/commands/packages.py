"""The subcommands of npm, and the arguments of those that only read or run a script of the project."""

from sayso.policy.words.commands.harmless import GROUP, Tool, harmless, words

_SCRIPT = harmless("-s -w --silent --if-present --workspace --workspaces", 0, ends_options=False)
_SHOWN = harmless("-a -g -l --all --depth --json --long --parseable --global --prod --production --omit --include")

_HARMLESS = {
    **dict.fromkeys(("ls", "ll", "outdated", "explain", "fund"), _SHOWN),
    **dict.fromkeys(("view", "search", "ping", "whoami", "root", "prefix", "query"), harmless("-g --json --long")),
    "version": harmless("--json", 0),
    "audit": harmless("--json --omit --audit-level --production", 0),
    "test": _SCRIPT,
    "pkg get": harmless("--json"),
    "config get": harmless("--json"),
    "config ls": harmless("--json"),
}
_ALIASES = {
    **dict.fromkeys(words("i in ins inst insta instal isnt isnta isntal isntall add"), "install"),
    **dict.fromkeys(words("clean-install ic install-clean isntall-clean"), "ci"),
    **dict.fromkeys(words("cit clean-install-test sit"), "install-ci-test"),
    **dict.fromkeys(words("un unlink remove rm r"), "uninstall"),
    **dict.fromkeys(words("up upgrade udpate"), "update"),
    **dict.fromkeys(words("t tst"), "test"),
    **dict.fromkeys(words("run-script rum urn"), "run"),
    **dict.fromkeys(words("list la"), "ls"),
    **dict.fromkeys(words("info show v"), "view"),
    **dict.fromkeys(words("s se find"), "search"),
    **dict.fromkeys(words("create innit"), "init"),
    **dict.fromkeys(words("add-user adduser"), "login"),
    **dict.fromkeys(words("hlep help-search"), "help"),
    "author": "owner",
    "c": "config",
    "config list": "config ls",
    "ddp": "dedupe",
    "dist-tags": "dist-tag",
    "home": "docs",
    "issues": "bugs",
    "it": "install-test",
    "ln": "link",
    "rb": "rebuild",
    "why": "explain",
    "x": "exec",
}
_RUNS = {f"run {name}": _SCRIPT for name in words("build check format lint start test type-check typecheck")}
NPM = Tool(
    flags=words("-s --silent --no-color -w --workspace --no-fund --no-audit"),
    valued=words("-w --workspace -C --prefix"),
    subcommands=words(
        "access audit bugs cache ci completion config dedupe deprecate diff dist-tag docs doctor edit exec",
        "explain explore find-dupes fund get help hook init install install-ci-test install-test link ll login",
        "logout ls org outdated owner pack ping pkg prefix profile prune publish query rebuild repo restart root",
        "run sbom search set shrinkwrap star stars start stop team test token trust undeprecate uninstall",
        "unpublish unstar update version view whoami",
    ),
    groups=dict.fromkeys(words("access audit cache config dist-tag hook org owner pkg profile team token"), GROUP)
    | {"run": Tool(flags=words("-s --silent"))},
    aliases=_ALIASES,
    harmless=_HARMLESS | _RUNS,
)
