"""Words of SQL: those of queries and changes, and those that are never a name without quotes."""


def parse_list(text: str) -> frozenset[str]:
    """Return the words of a text that blanks part."""
    return frozenset(text.split())


_QUERY = parse_list(
    """
    all and any array as asc between by case cast cross cube current default desc distinct else end escape
    except exists false fetch filter first following for from full group grouping having if in inner intersect
    interval is join last lateral left like limit minus natural next no not null nulls of offset on only or
    order outer over partition preceding range recursive right rollup row rows select sets some then ties to
    true unbounded union unnest using values when where window with within without zone
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
    constraint copy create database default delete do drop duplicate exists foreign grant identity if ignore
    index insert into key matched materialized merge nothing not overwrite pragma primary references rename
    replace restrict returning rollback schema set source table target temp temporary transaction truncate
    unique update use values view work
    """
)
"""Words of changes, beside those of queries."""

STARTS = parse_list(
    """
    alter begin commit create delete describe drop explain insert merge pragma rollback select start truncate
    update use values with
    """
)
"""Words with which a statement that the reader knows can begin."""

QUERY_STARTS = frozenset(("describe", "explain", "select", "values", "with"))
CHANGES = frozenset(("delete", "insert", "into", "merge", "update"))
"""Words that a change has also inside a statement that begins as a query."""

_NEVER_NAMES = parse_list(
    """
    all alter and as between by case commit create declare delete distinct drop dumpfile else exec execute
    except exists for from grant group having in insert intersect into is join like limit merge not null on or
    order outfile returning revoke rollback select set settings then truncate union update using values when
    where with
    """
)
_STARTS_OF_TSQL = parse_list(
    """
    backup begin break bulk checkpoint close continue dbcc deallocate declare deny disable dump enable end exec
    execute fetch get go goto if kill lineno load move open print raiserror readtext receive reconfigure restore
    return revert save send setuser shutdown throw tran transaction updatetext use waitfor while writetext
    """
)
"""Words that begin a statement of T-SQL, which needs no semicolon before it."""
_NEVER_NAMES_OF = {
    "": _STARTS_OF_TSQL,
    "tsql": _STARTS_OF_TSQL
    | parse_list(
        """
    add asc authorization browse cascade check clustered coalesce collate column compute constraint contains
    containstable convert cross current current_date current_time current_timestamp current_user cursor database
    default desc disk distributed double errlvl escape exit external file fillfactor foreign freetext
    freetexttable full function holdlock identity identity_insert identitycol index inner key left national
    nocheck nonclustered nullif of off offsets opendatasource openquery openrowset openxml option outer over
    percent pivot plan precision primary proc procedure public read references replication restrict right
    rowcount rowguidcol rule schema securityaudit semantickeyphrasetable semanticsimilaritydetailstable
    semanticsimilaritytable session_user some statistics system_user table tablesample textsize to top trigger
    try_convert tsequal unique unpivot user varying view within
    """
    ),
    "oracle": frozenset(("function", "procedure")),
    **dict.fromkeys(("databricks", "spark"), frozenset(("map", "reduce", "transform"))),
    "mysql": frozenset(("lock", "procedure")),
}

TYPES = parse_list(
    """
    array bigint bigdecimal bignumeric binary bit blob bool boolean byte bytea bytes char character cidr clob
    date date32 datetime datetime2 datetime64 datetimeoffset decimal decimal32 decimal64 double enum float
    float32 float4 float64 float8 geography geometry hugeint image inet int int128 int16 int2 int256 int32 int4
    int64 int8 integer interval ipaddress ipv4 ipv6 json jsonb long longtext lowcardinality map mediumint
    mediumtext money nchar ntext null nullable number numeric nvarchar nvarchar2 object precision real rowid
    serial short signed smalldatetime smallint smallmoney string struct super text time timestamp timestamp_ltz
    timestamp_ntz timestamp_tz timestamptz timetz tinyint tinytext tuple ubigint uint128 uint16 uint256 uint32
    uint64 uint8 uinteger uniqueidentifier unsigned uuid varbinary varbyte varchar varchar2 variant varying xml
    year
    """
)
"""Types that cast a value and do nothing else."""

_BEFORE_PARENTHESES = parse_list(
    """
    all and any apply as between by case cast cube default distinct div else escape except exclude exists filter
    from group having ilike in inner intersect interval is join lateral like limit materialized minus not offset
    on or over pivot prewhere qualify regexp rlike rollup safe_cast select sets similar some then to top
    try_cast union unpivot using values when where with within
    """
)
"""Words of queries before a parenthesis that is no call."""
_CHANGED_BEFORE_PARENTHESES = parse_list("check conflict into key partition primary returning set unique")


def list_query_words(database: str) -> frozenset[str]:
    """Return the words of queries; without a database, those that all databases have."""
    return _QUERY | frozenset(_QUERY_OF.get(database, "").split())


def list_change_words(database: str) -> frozenset[str]:
    """Return the words of queries and changes."""
    return list_query_words(database) | _CHANGE


def list_reserved(database: str) -> frozenset[str]:
    """Return the words that are never a name without quotes; without a database, also those that begin statements."""
    return _NEVER_NAMES | _NEVER_NAMES_OF.get(database, frozenset())


def list_before_parentheses(database: str, changes: bool) -> frozenset[str]:
    """Return the words before a parenthesis that is no call."""
    known = _BEFORE_PARENTHESES & list_query_words(database)
    return known | _CHANGED_BEFORE_PARENTHESES if changes else known
