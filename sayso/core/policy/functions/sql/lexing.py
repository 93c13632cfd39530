"""Tokens and words of SQL, and the budget of a text before it is parsed.

Only spellings that a database and the parser read alike are tokens; all others are refused.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from sayso.core.policy.functions import Uncomputable


def parse_list(text: str) -> frozenset[str]:
    """Return the words of a text that blanks part."""
    return frozenset(text.split())


_QUERY = parse_list(
    """
    all and any array as asc between by case cast cross cube current default desc distinct else end escape except exists
    false fetch filter first following for from full group grouping having if in inner intersect interval is join last
    lateral left like limit minus natural next no not null nulls of offset on only or order outer over partition
    preceding range recursive right rollup row rows select sets some then ties to true unbounded union unnest using
    values when where window with within without zone
    """
)
_QUERY_OF = {
    "athena": "at filter ordinality safe tablesample time try_cast",
    "bigquery": "at div except ordinality pivot qualify replace safe_cast struct tablesample time unpivot",
    "clickhouse": "anti any array asof final format global ilike offset prewhere qualify semi",
    "databricks": "anti at div ilike pivot qualify regexp rlike semi tablesample time try_cast unpivot",
    "duckdb": "anti asof at div exclude glob ilike map ordinality pivot positional qualify replace sample semi similar "
    "struct time try_cast unpivot",
    "mysql": "binary collate convert div mod regexp rlike separator straight_join unsigned signed xor",
    "oracle": "connect connect_by_root level listagg nocycle pivot prior start unpivot siblings keep time at",
    "postgres": "at both collate ilike isnull leading materialized notnull ordinality placing similar symmetric "
    "tablesample time trailing variadic",
    "presto": "at ordinality tablesample time try_cast",
    "redshift": "at ilike similar qualify time top",
    "snowflake": "asof at ilike input outer path pivot qualify regexp rlike sample time top try_cast unpivot",
    "spark": "anti at div ilike pivot qualify regexp rlike semi tablesample time try_cast unpivot",
    "sqlite": "collate glob indexed isnull materialized match notnull regexp",
    "trino": "at ordinality tablesample time try_cast",
    "tsql": "apply collate convert nolock percent pivot readpast readuncommitted top try_cast try_convert unpivot at "
    "time",
}
"""Words of the queries of one database."""

_CHANGE = parse_list(
    """
    add after also alter auto_increment autoincrement begin cascade check collate column comment commit conflict
    constraint copy create database default delete do drop duplicate exists foreign grant identity if ignore index
    insert into key matched materialized merge nothing not overwrite pragma primary references rename replace restrict
    returning rollback schema set source table target temp temporary transaction truncate unique update use values view
    work
    """
)
"""Words of changes, beside those of queries."""

STARTS = parse_list(
    """
    alter begin commit create delete describe drop explain insert merge pragma rollback select start truncate update use
    values with
    """
)
"""Words with which a statement that the reader knows can begin."""

QUERY_STARTS = frozenset(("describe", "explain", "select", "values", "with"))
CHANGES = frozenset(("delete", "insert", "into", "merge", "update"))
"""Words that a change has also inside a statement that begins as a query."""

_NEVER_NAMES = parse_list(
    """
    all alter and as between by case commit create declare delete distinct drop dumpfile else exec execute except exists
    for from grant group having in insert intersect into is join like limit merge not null on or order outfile returning
    revoke rollback select set settings then truncate union update using values when where with
    """
)
_STARTS_OF_TSQL = parse_list(
    """
    backup begin break bulk checkpoint close continue dbcc deallocate declare deny disable dump enable end exec execute
    fetch get go goto if kill lineno load move open print raiserror readtext receive reconfigure restore return revert
    save send setuser shutdown throw tran transaction updatetext use waitfor while writetext
    """
)
"""Words that begin a statement of T-SQL, which needs no semicolon before it."""
_NEVER_NAMES_OF = {
    "": _STARTS_OF_TSQL,
    "tsql": _STARTS_OF_TSQL
    | parse_list(
        """
    add asc authorization browse cascade check clustered coalesce collate column compute constraint contains
    containstable convert cross current current_date current_time current_timestamp current_user cursor database default
    desc disk distributed double errlvl escape exit external file fillfactor foreign freetext freetexttable full
    function holdlock identity identity_insert identitycol index inner key left national nocheck nonclustered nullif of
    off offsets opendatasource openquery openrowset openxml option outer over percent pivot plan precision primary proc
    procedure public read references replication restrict right rowcount rowguidcol rule schema securityaudit
    semantickeyphrasetable semanticsimilaritydetailstable semanticsimilaritytable session_user some statistics
    system_user table tablesample textsize to top trigger try_convert tsequal unique unpivot user varying view within
    """
    ),
    "oracle": frozenset(("function", "procedure")),
    **dict.fromkeys(("databricks", "spark"), frozenset(("map", "reduce", "transform"))),
    "mysql": frozenset(("lock", "procedure")),
}

TYPES = parse_list(
    """
    array bigint bigdecimal bignumeric binary bit blob bool boolean byte bytea bytes char character cidr clob date
    date32 datetime datetime2 datetime64 datetimeoffset decimal decimal32 decimal64 double enum float float32 float4
    float64 float8 geography geometry hugeint image inet int int128 int16 int2 int256 int32 int4 int64 int8 integer
    interval ipaddress ipv4 ipv6 json jsonb long longtext lowcardinality map mediumint mediumtext money nchar ntext null
    nullable number numeric nvarchar nvarchar2 object precision real rowid serial short signed smalldatetime smallint
    smallmoney string struct super text time timestamp timestamp_ltz timestamp_ntz timestamp_tz timestamptz timetz
    tinyint tinytext tuple ubigint uint128 uint16 uint256 uint32 uint64 uint8 uinteger uniqueidentifier unsigned uuid
    varbinary varbyte varchar varchar2 variant varying xml year
    """
)
"""Types that cast a value and do nothing else."""

_BEFORE_PARENTHESES = parse_list(
    """
    all and any apply as between by case cast cube default distinct div else escape except exclude exists filter from
    group having ilike in inner intersect interval is join lateral like limit materialized minus not offset on or over
    pivot prewhere qualify regexp rlike rollup safe_cast select sets similar some then to top try_cast union unpivot
    using values when where with within
    """
)
"""Words of queries before a parenthesis that is no call."""
_CHANGED_BEFORE_PARENTHESES = parse_list("check conflict into key partition primary returning set unique")


def list_words(database: str, changes: bool) -> frozenset[str]:
    """Return the words of queries, and those of changes; without a database, those that all databases have."""
    return _QUERY.union(_QUERY_OF.get(database, "").split(), _CHANGE if changes else ())


def list_reserved(database: str) -> frozenset[str]:
    """Return the words that are never a name without quotes; without a database, also those that begin statements."""
    return _NEVER_NAMES | _NEVER_NAMES_OF.get(database, frozenset())


def list_before_parentheses(database: str, changes: bool) -> frozenset[str]:
    """Return the words before a parenthesis that is no call."""
    known = _BEFORE_PARENTHESES & list_words(database, changes=False)
    return known | _CHANGED_BEFORE_PARENTHESES if changes else known


MOST_TOKENS = 1_000
MOST_NESTED = 16  # the limit of open parentheses, brackets and `case` at one place
MOST_INDEXES = 4  # the limit of brackets one after another, as in `a[1][2]`: the parser copies what is before each
MOST_QUERIES = 60
_NESTED_TYPES = frozenset(("array", "map", "struct"))

_BACKTICKS = parse_list("athena bigquery clickhouse databricks mysql spark sqlite")
_DOLLARS = frozenset(("clickhouse", "duckdb", "postgres", "redshift", "snowflake"))
_BRACKETS = {"tsql": r"\[(?:[^\]]|\]\])*+\]", "sqlite": r"\[[^\]]*\](?!\])"}
_TRIPLE = frozenset(("", "bigquery"))
_TEXT_IN_DOUBLE = frozenset(("bigquery", "databricks", "mysql", "spark"))
"""Databases in which double quotes hold a text."""
_SIGNS = ("<>", "!=", "<=", ">=", "(", ")", ",", ".", ";", "*", "+", "-", "/", "%", "=", "<", ">")
_COLONS = ("athena", "databricks", "mysql", "oracle", "postgres", "presto", "redshift", "spark", "sqlite", "trino")
_MORE_SIGNS = {
    "||": ("*all",),
    "::": ("clickhouse", "databricks", "duckdb", "postgres", "redshift", "snowflake"),
    "->": ("athena", "clickhouse", "databricks", "duckdb", "mysql", "postgres", "presto", "spark", "sqlite", "trino"),
    "->>": ("duckdb", "mysql", "postgres", "sqlite"),
    "=>": ("databricks", "duckdb", "postgres", "snowflake", "spark"),
    "[": ("*all", "-tsql", "-sqlite", "-mysql", "-oracle"),
    "]": ("*all", "-tsql", "-sqlite", "-mysql", "-oracle"),
    ":": (*_COLONS, "bigquery", "clickhouse", "duckdb", "snowflake"),
    "?": ("*all",),
    "==": ("clickhouse", "databricks", "duckdb", "spark", "sqlite"),
    "<=>": ("databricks", "mysql", "spark"),
    "//": ("duckdb",),
    "<<": ("bigquery", "mysql", "postgres", "sqlite"),
    ">>": ("*all", "-oracle", "-tsql"),
    "&": ("*all", "-oracle"),
    "|": ("*all", "-oracle"),
    "^": ("bigquery", "mysql", "tsql"),
    "~": ("bigquery", "databricks", "duckdb", "mysql", "postgres", "redshift", "spark", "sqlite", "tsql"),
    **dict.fromkeys(("#>>", "#>", "@>", "<@", "?|", "?&", "~*", "!~*", "!~"), ("postgres",)),
    "&&": ("mysql", "postgres"),
}
_PREFIXES = {
    "e": ("postgres", "redshift", "duckdb"),
    "n": ("mysql", "oracle", "tsql"),
    "b": ("bigquery", "mysql", "postgres"),
    "r": ("bigquery", "databricks", "spark"),
    "x": ("clickhouse", "databricks", "mysql", "postgres", "spark", "sqlite"),
}
_TYPED = frozenset(("date", "time", "timestamp", "datetime", "interval", "json"))

_OUTER_JOIN = "(+)"  # a sign of Oracle that is three tokens here


class Token(NamedTuple):
    """A token: `kind` is `word`, `name` (in quotes), `text`, `number`, `parameter` or `sign`."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in small letters; empty for other tokens."""
        return self.text.lower() if self.kind == "word" else ""


def list_tokens(text: str, database: str) -> list[Token]:
    """Return the tokens without blanks and comments; an empty database takes only what all databases read alike."""
    pattern = _make_pattern(database)
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        match = pattern.match(text, place)
        if match is None:
            where = f"{database} may read" if database else "databases read"
            advice = "" if database else '; name the database, as in sql(args.query, "postgres")'
            raise Uncomputable(f"it has {text[place : place + 2]!r}, which {where} differently{advice}")
        kind = match.lastgroup or ""
        if kind not in ("blank", "comment"):
            if len(tokens) >= MOST_TOKENS:
                raise Uncomputable(f"it has more than {MOST_TOKENS} tokens")
            tokens.append(Token(kind, match[0], place, match.end()))
            _check_token(tokens, database)
        place = match.end()
    return tokens


@cache
def _make_pattern(database: str) -> re.Pattern[str]:
    names = [r'"(?:[^"]|"")*+"'] if database not in ("", *_TEXT_IN_DOUBLE) else []
    prefixes = "".join(prefix for prefix, known in _PREFIXES.items() if database in known)
    texts = [rf"(?i:[{prefixes}])?'(?:[^']|'')*+'" if prefixes else r"'(?:[^']|'')*+'"]
    texts += [r'"(?:[^"]|"")*+"'] if database in _TEXT_IN_DOUBLE else []
    names += [r"`(?:[^`]|``)++`"] if database in _BACKTICKS else []
    names += [_BRACKETS[database]] if database in _BRACKETS else []
    if database in _DOLLARS:
        texts.append(r"\$\$.*?\$\$" if database == "snowflake" else r"\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$")
    word = r"[^\W\d][\w$]*" if database else r"[^\W\d]\w*"
    every = {sign for sign, known in _MORE_SIGNS.items() if known[0] == "*all" and f"-{database}" not in known}
    more = [sign for sign, known in _MORE_SIGNS.items() if sign in every or database in known] if database else []
    signs = sorted([*_SIGNS, *more], key=len, reverse=True)
    groups = {
        "blank": r"[ \t\n]+",
        "comment": r"--(?:[ \t][^\n]*)?(?=\n|\Z)|/\*(?![+!]|M!)(?:(?!\*/|/\*).)*\*/",
        "text": "|".join(texts),
        "name": "|".join(names) or r"(?!)",
        "parameter": r"\$\d+" if database in _DOLLARS else r"@@?\w+" if database == "tsql" else r"(?!)",
        "word": rf"\#{{1,2}}{word}|{word}" if database == "tsql" else word,
        "number": rf"(?>{'0[xX][0-9a-fA-F]+|' if database else ''}(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?!\w)",
        "sign": rf"(?!--|/\*)(?:{'|'.join(re.escape(sign) for sign in signs)})",
    }
    return re.compile("|".join(f"(?P<{kind}>{group})" for kind, group in groups.items()), re.DOTALL)


def _check_token(tokens: list[Token], database: str) -> None:
    token, before = tokens[-1], tokens[-2] if len(tokens) > 1 else None
    text = token.text
    if token.kind == "text" and text[:3] in ("'''", '"""') and len(text) > 2 and database in _TRIPLE:
        raise Uncomputable("it has three quotes in a row, which databases read differently")
    if token.kind in ("word", "name") and not text.isascii():
        check_letters(text)
    if before is None or before.end != token.start:
        return
    if token.kind == "text" and before.kind == "text" and database in _TRIPLE:
        raise Uncomputable("it has a quote in a text, which databases read differently")
    if token.kind == "text" and before.word and before.word not in _TYPED:
        raise Uncomputable(f"it has {before.text} right before a quote, which databases read differently")
    if before.kind == "number" and token.kind in ("word", "number", "name"):
        raise Uncomputable(f"it has {before.text}{text}, which databases read differently")


def check_letters(name: str) -> None:
    """Raise `Uncomputable` for letters that a database may read as others, such as a long s or full-width letters."""
    changed = name.lower() + name.upper() + name.casefold()
    if unicodedata.normalize("NFKC", name) != name or sum(map(str.isascii, changed)) != 3 * sum(map(str.isascii, name)):
        raise Uncomputable(f"it has the name {name}, whose letters databases may read as others")


def check_budget(tokens: Sequence[Token]) -> None:
    """Raise `Uncomputable` for a text that takes the parser too long."""
    nested = types = 0
    indexes: dict[int, int] = {}
    before = ""
    for token in tokens:
        nested -= token.text in (")", "]") or token.word == "end"
        if token.text == "[":
            indexes[nested] = indexes.get(nested, 0) + 1 if before == "]" else 1
            if indexes[nested] > MOST_INDEXES:
                raise Uncomputable(f"it has more than {MOST_INDEXES} indexes in a row")
        nested += token.text in ("(", "[") or token.word == "case"
        if nested > MOST_NESTED:
            raise Uncomputable(f"it is nested too deeply; the limit is {MOST_NESTED}")
        types += token.text == "<" and before.lower() in _NESTED_TYPES
        before = token.text
    if types > MOST_NESTED:
        raise Uncomputable(f"it has more than {MOST_NESTED} nested types")
    if sum(token.word == "select" for token in tokens) > MOST_QUERIES:
        raise Uncomputable(f"it has more than {MOST_QUERIES} queries")


def check_spans(text: str, tokens: Sequence[Token], spans: Sequence[tuple[int, int]]) -> None:
    """Raise `Uncomputable` if the spans of the parser's tokens part texts, names or signs in another way."""
    starts, ends = {token.start for token in tokens}, {end for _, end in spans}
    signs = (
        (start, end) for start, end in spans if not text[start : start + 1].isalnum() and text[start:end] != _OUTER_JOIN
    )
    joined = (place for start, end in signs for place in range(start + 1, end))
    quoted = {place for token in tokens if token.kind in ("text", "name") for place in range(token.start, token.end)}
    if any(token.end not in ends for token in tokens if token.kind in ("text", "name")):
        raise Uncomputable("it has a quote that the parser reads differently")
    if any(place in starts and place not in quoted for place in joined):
        raise Uncomputable("it has signs in a row that databases part differently")
