"""Syntax trees of SQL: their tables and names, and whether their changes are limited.

A tree with a node that the reader does not know is refused. Nodes have the names of the parser's classes.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any

from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.sql.lexing import check_letters, parse_list

_SYNTAX = """
    Add Alias Aliases All Alter AlterColumn AlterRename And Any Array ArrayContainedBy ArrayContainsAll ArrayOverlaps
    AtTimeZone Between Binary BitString BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor
    Boolean Bracket ByteString CTE Case Cast CollateColumnConstraint Column ColumnConstraint ColumnDef ColumnPosition
    Commit Connect Convert Create Cube CurrentTimestamp DPipe DataType DataTypeParam DefaultColumnConstraint Delete
    Describe Distinct Div Dot Drop EQ Escape Except Exists Fetch Filter Final From FromTimeZone GT GTE Glob Group
    GroupingSets Having HavingMax HexString ILike Identifier If IgnoreNulls In Insert IntDiv Intersect Interval
    IntervalSpan Into Is JSONBContains JSONBContainsAllTopKeys JSONBContainsAnyTopKeys JSONBExtract JSONBExtractScalar
    JSONExtract JSONExtractScalar JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathRoot JSONPathSubscript
    JSONValue Join Kwarg LT LTE Lambda Lateral Like Limit LimitOptions Literal MatchAgainst Merge Mod Mul NEQ National
    Neg NestedJSONSelect Not NotNullColumnConstraint Null NullSafeEQ NullSafeNEQ Offset OnConflict Or Order Ordered
    Parameter Paren Pivot Placeholder PositionalColumn Pragma PreWhere PrimaryKey PrimaryKeyColumnConstraint Prior
    Properties PropertyEQ Qualify RawString RegexpILike RegexpLike RenameColumn RespectNulls Returning Rollback Rollup
    Schema Select SetOperation SimilarTo Slice Star Sub Subquery Table TableAlias TemporaryProperty Transaction
    TruncateTable TryCast Tuple Union UniqueColumnConstraint Unnest Update Use Values Var When Whens Where Window
    WindowSpec With WithTableHint WithinGroup Xor
    """
_FUNCTIONS = """
    Abs Acos Acosh AddMonths Anonymous AnonymousAggFunc AnyValue ApproxDistinct ApproxQuantile ApproxQuantiles
    ApproxTopK ArgMax ArgMin ArrayAgg ArrayAppend ArrayCompact ArrayConcat ArrayConcatAgg ArrayContains ArrayDistinct
    ArrayExcept ArrayFilter ArrayInsert ArrayIntersect ArrayMax ArrayMin ArrayPosition ArrayPrepend ArrayRemove
    ArrayReverse ArraySize ArraySlice ArraySort ArraySum ArrayToString ArrayUniqueAgg ArraysZip Ascii Asin Asinh Atan
    Atan2 Atanh Avg Base64DecodeString Base64Encode BitLength BitwiseAndAgg BitwiseCount BitwiseOrAgg BitwiseXorAgg
    BoolxorAgg ByteLength CastToStrType Cbrt Ceil CheckJson Chr CityHash64 Coalesce CodePointsToString Collate Columns
    CombinedAggFunc Concat ConcatWs Contains ConvertTimezone Corr Cos Cosh Cot Count CountIf CovarPop CovarSamp Csc
    CumeDist CurrentAccount CurrentCatalog CurrentDatabase CurrentDate CurrentDatetime CurrentRole CurrentSchema
    CurrentTime CurrentTimestampLTZ CurrentTimezone CurrentUser CurrentVersion CurrentWarehouse Date DateAdd DateBin
    DateDiff DateFromParts DateFromUnixDate DateSub DateTrunc Datetime DatetimeAdd DatetimeDiff DatetimeSub
    DatetimeTrunc Day DayOfMonth DayOfWeek DayOfWeekIso DayOfYear Dayname Decode DecodeCase Degrees DenseRank Elt Encode
    EndsWith EqualNull Exp Explode ExplodingGenerateSeries Extract Factorial FarmFingerprint First FirstValue Flatten
    Floor Format FromBase FromBase64 FromISO8601Date FromISO8601Timestamp FromJson GenerateDateArray GenerateSeries
    GenerateTimestampArray GetExtract Greatest GroupConcat Grouping GroupingId HashAgg Hex Hll Hour Initcap Inline Int64
    IsArray IsInf IsNan IsNullValue JSONArray JSONArrayAgg JSONArrayAppend JSONArrayContains JSONArrayInsert JSONBExists
    JSONBObjectAgg JSONBool JSONExists JSONExtractArray JSONFormat JSONKeys JSONObject JSONObjectAgg JSONRemove JSONSet
    JSONStripNulls JSONType JSONValueArray JarowinklerSimilarity JustifyDays JustifyHours JustifyInterval Kurtosis Lag
    Last LastDay LastValue LaxBool LaxFloat64 LaxInt64 LaxString Lead Least Left Length Levenshtein Ln Localtime
    Localtimestamp Log LogicalAnd LogicalOr Lower LowerHex MD5 MD5Digest MakeInterval Map MapContainsKey MapFromEntries
    MapKeys Max Median Min Minute Mode Month Monthname MonthsBetween Nanvl Negative NextDay Normalize NthValue Ntile
    Nullif NumberToStr Nvl2 ObjectAgg ObjectInsert Overlay Pad ParseBignumeric ParseDatetime ParseIp ParseJSON
    ParseNumeric ParseTime ParseUrl PercentRank PercentileCont PercentileDisc Pi Posexplode PosexplodeOuter Pow
    PreviousDay Quantile Quarter Radians Rand Randn Randstr RangeBucket Rank Reduce RegexpCount RegexpExtract
    RegexpExtractAll RegexpFullMatch RegexpInstr RegexpReplace RegexpSplit RegexpSubstr RegrAvgx RegrAvgy RegrCount
    RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy Repeat Replace Reverse Right Rint Round RowNumber SHA
    SHA1Digest SHA2 SHA2Digest SafeAdd SafeConvertBytesToString SafeDivide SafeMultiply SafeNegate SafeSubtract Second
    SessionUser Shuffle Sign Sin Sinh Skewness Soundex Space Split SplitPart Sqrt Stack StandardHash StartsWith Stddev
    StddevPop StddevSamp StrPosition StrToDate StrToMap StrToTime StrToUnix String StringToArray StripNullValue Strtok
    StrtokToArray Struct StructExtract Stuff Substring SubstringIndex Sum Systimestamp Tan Tanh Time TimeAdd TimeDiff
    TimeFromParts TimeSlice TimeStrToTime TimeSub TimeToStr TimeToUnix TimeTrunc Timestamp TimestampAdd TimestampDiff
    TimestampFromParts TimestampSub TimestampTrunc ToArray ToBase64 ToBinary ToBoolean ToChar ToDays ToDouble ToNumber
    ToVariant Transform Translate Trim Trunc Try TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDatetime TsOrDsToTime
    TsOrDsToTimestamp Typeof Unhex Unicode Uniform UnixDate UnixMicros UnixMillis UnixSeconds UnixToStr UnixToTime Upper
    UtcDate UtcTime UtcTimestamp Uuid VarMap Variance VariancePop Week WeekOfYear WeightString WidthBucket Year
    YearOfWeek YearOfWeekIso _ExplodeOuter
    """
NODES = parse_list(f"{_SYNTAX} {_FUNCTIONS}")
TYPES = parse_list(
    """
    ARRAY BIGDECIMAL BIGINT BIGSERIAL BINARY BIT BLOB BOOLEAN BPCHAR CHAR DATE DATE32 DATETIME DATETIME2 DATETIME64
    DECFLOAT DECIMAL DECIMAL128 DECIMAL256 DECIMAL32 DECIMAL64 DOUBLE FIXEDSTRING FLOAT GEOGRAPHY GEOMETRY INET INT
    INT128 INT256 INTERVAL IPADDRESS IPV4 IPV6 JSON JSONB LIST LONGTEXT LOWCARDINALITY MAP MEDIUMINT MEDIUMTEXT MONEY
    NCHAR NESTED NULL NVARCHAR OBJECT ROWVERSION SERIAL SMALLDATETIME SMALLINT SMALLMONEY STRUCT SUPER TEXT TIME
    TIMESTAMP TIMESTAMPLTZ TIMESTAMPNTZ TIMESTAMPTZ TIMESTAMP_MS TIMESTAMP_NS TIMESTAMP_S TIMETZ TIME_NS TINYINT
    TINYTEXT UBIGINT UDECIMAL UDOUBLE UINT UINT128 UINT256 UMEDIUMINT USMALLINT UTINYINT UUID VARBINARY VARCHAR VARIANT
    YEAR
    """
)
"""Types whose values have no code of their own, unlike those that users define."""


_NAME = re.compile(r"[^\W\d][\w $#-]*|#{1,2}\w+")
_FILES = parse_list(
    """
    arrow avro csv db duckdb feather gz json jsonl ndjson orc parquet tsv txt xls xlsx xml zst
    """
)
_SOURCES = parse_list(
    """
    avro binaryfile cloudfiles csv delta hive hudi iceberg image jdbc json kafka libsvm noop orc parquet rate socket
    text xml
    """
)
_FILES_AS_TABLES = {"duckdb": (-1, _FILES), "spark": (0, _SOURCES), "databricks": (0, _SOURCES)}
"""Databases that take a qualified name as a file: the part of the name that says so, and its values."""
_STATEMENTS = (
    *("Select", "SetOperation", "Subquery", "Values", "Describe", "Insert", "Update", "Delete", "Merge", "Create"),
    *("Drop", "Alter", "TruncateTable", "Transaction", "Commit", "Rollback", "Use", "Pragma"),
)
_HINTS = frozenset(("nolock", "readpast", "readuncommitted"))  # hints of T-SQL that lock no row
_VIRTUAL = re.compile(r"pragma_\w+|sqlite_dbpage|dbstat")  # tables of SQLite that are no tables
_CLAUSES = parse_list("match_recognize model option pivot sample settings table tablesample unpivot window")
"""Words before a parenthesis that the parser may take as an alias with columns."""
_SEQUENCES = frozenset(("nextval", "currval"))
_OF_DUAL = frozenset(("dummy", "level", "rownum"))


class Tree:
    """The parsed statements of a text, all of whose nodes are known."""

    def __init__(self, statements: Sequence[Any], database: str) -> None:
        self._database = database
        self._nodes = [node for statement in statements for node in statement.walk()]
        self.statements = len(statements)
        for node in self._nodes:
            name = type(node).__name__
            if name not in NODES:
                raise Uncomputable(f"it has a part that the reader does not know ({name})")
            if name == "DataType" and str(getattr(node.this, "name", node.this)) not in TYPES:
                raise Uncomputable(f"it has the type {node.this}, which the reader does not know")
        if not all(is_a(statement, *_STATEMENTS) for statement in statements):
            raise Uncomputable("it has a statement that the reader does not know")
        self.tables = [*dict.fromkeys(name for node in self.find("Table") for name in self._list_names(node))]
        for node in self.find("Column"):
            # Sequences, and functions of Oracle's packages, run code without parentheses.
            owner = str(node.table).lower()
            if owner and node.name.lower() in _SEQUENCES:
                raise Uncomputable(f"it has {owner}.{node.name}, which may change a sequence")
            if self._database != "oracle" or is_a(node.this, "Star"):
                continue
            if owner and owner not in self._sources:
                raise Uncomputable(f"it has {owner}.{node.name}, which may be a function of a package")
            if not owner and {*self.tables} <= {"dual"} and node.name.lower() not in _OF_DUAL:
                raise Uncomputable(f"it has {node.name}, which may be a function")
        for node in self.find("TableAlias"):
            columns = node.args.get("columns") or ()
            are_names = all(is_a(column, "Identifier", "ColumnDef") for column in columns)
            if columns and (node.name.lower() in _CLAUSES or not are_names):
                raise Uncomputable(f"it has {node.name} after a table, which the reader does not know")

    def has(self, *classes: str) -> bool:
        return any(is_a(node, *classes) for node in self._nodes)

    def count(self, *classes: str) -> int:
        return sum(is_a(node, *classes) for node in self._nodes)

    @property
    def names(self) -> set[str]:
        """All names, in quotes or not, in small letters."""
        keys = {str(node.this).lower() for node in self.find("JSONPathKey")}
        return keys | {str(node.name).lower() for node in self.find("Identifier", "Var")}

    @property
    def bare_names(self) -> set[str]:
        """The names without quotes, in small letters."""
        nodes = (node for node in self.find("Identifier", "Var") if not is_a(node.parent, "When", "OnConflict"))
        return {str(node.name).lower() for node in nodes if not node.args.get("quoted")}

    @property
    def calls(self) -> set[str]:
        """The functions that the parser does not know, in small letters."""
        return {str(node.name).lower() for node in self.find("Anonymous", "AnonymousAggFunc", "CombinedAggFunc")}

    @property
    def shapes(self) -> Counter[str]:
        """How often a name has columns in parentheses after it."""
        shaped = (
            node.this.this if is_a(node.this, "Table") else node.this
            for node in self.find("Schema", "TableAlias")
            if node.this is not None and (node.expressions or node.args.get("columns"))
        )
        windows = (node for node in self.find("Identifier") if is_a(node.parent, "Window"))
        return Counter(str(node.name).lower() for node in (*shaped, *windows))

    @cached_property
    def _sources(self) -> set[str]:
        """The tables and aliases that own columns, in small letters."""
        nodes = self.find("Table", "TableAlias")
        return {*self.tables, *(name.lower() for node in nodes for name in (node.name, node.alias))}

    @property
    def is_limited(self) -> bool:
        """Whether each update and delete has a condition that depends on a column."""
        wheres = [node.args.get("where") for node in self.find("Update", "Delete")]
        return all(where is not None and self._names_column(where.this) for where in wheres)

    def find(self, *classes: str) -> Iterator[Any]:
        return (node for node in self._nodes if is_a(node, *classes))

    def _list_names(self, table: Any) -> list[str]:
        """Return a table's name, and its qualified name if it has one."""
        if is_a(table.this, "Func"):
            return []
        if not is_a(table.this, "Identifier", "Dot"):
            raise Uncomputable("it has a table whose name the text does not show")
        parts = [f"{'#' if part.args.get('temporary') else ''}{part.name}".lower() for part in table.parts]
        for part in parts:
            if not _NAME.fullmatch(part):
                raise Uncomputable(f"it has the table {part}, which databases may read as a file or an address")
            if not part.isascii():
                check_letters(part)
        place, values = _FILES_AS_TABLES.get(self._database, (0, frozenset[str]()))
        if len(parts) > 3 or (len(parts) > 1 and parts[place] in values):
            raise Uncomputable(f"it has the table {'.'.join(parts)}, which may be a file or on another server")
        if self._database == "sqlite" and _VIRTUAL.fullmatch(parts[-1]):
            raise Uncomputable(f"it has {parts[-1]}, which is no table")
        hints = (hint for node in table.args.get("hints") or () for hint in node.expressions)
        if any(hint.name.lower() not in _HINTS for hint in hints):
            raise Uncomputable("it has a hint that may lock the table")
        return [parts[-1], ".".join(parts)]

    def _names_column(self, condition: Any) -> bool:
        """Whether a condition leaves out rows by a column, unlike `1 = 1` or `id = id`."""
        if is_a(condition, "Paren"):
            return self._names_column(condition.this)
        if is_a(condition, "Or"):
            return self._names_column(condition.left) and self._names_column(condition.right)
        if is_a(condition, "And"):
            return self._names_column(condition.left) or self._names_column(condition.right)
        if is_a(condition, "Binary") and condition.left == condition.right:
            return False
        # In SQLite and T-SQL, double quotes may also hold a text.
        return any(
            self._database not in ("sqlite", "tsql") or not column.this.args.get("quoted")
            for column in condition.find_all(*classes(("Column",)))
        )


@lru_cache(maxsize=64)
def classes(names: tuple[str, ...]) -> tuple[type, ...]:
    """Return classes of the parser's nodes."""
    expressions = import_module("sqlglot.expressions")
    return tuple(getattr(expressions, name) for name in names)


def is_a(node: Any, *names: str) -> bool:
    """Whether a node is of one of the classes."""
    return isinstance(node, classes(names))
