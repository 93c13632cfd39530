"""Nodes of syntax trees that the reader knows; a tree with another node is refused.

The names are those of the parser's classes. Which functions may be called is decided by their names in the text.
"""

from sayso.policy.words.databases.vocabulary import parse_list

_SYNTAX = """
    Add Alias Aliases All Alter AlterColumn AlterRename And Any Array ArrayContainedBy ArrayContainsAll
    ArrayOverlaps AtTimeZone Between Binary BitString BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
    BitwiseRightShift BitwiseXor Boolean Bracket ByteString CTE Case Cast CollateColumnConstraint Column
    ColumnConstraint ColumnDef ColumnPosition Commit Connect Convert Create Cube
    CurrentTimestamp DPipe DataType DataTypeParam DefaultColumnConstraint Delete Describe Distinct Div Dot Drop
    EQ Escape Except Exists Fetch Filter Final From FromTimeZone GT GTE Glob
    Group GroupingSets Having HavingMax HexString ILike Identifier If IgnoreNulls In Insert IntDiv Intersect
    Interval IntervalSpan Into Is JSONBContains JSONBContainsAllTopKeys JSONBContainsAnyTopKeys JSONBExtract
    JSONBExtractScalar JSONExtract JSONExtractScalar JSONKeyValue JSONPath JSONPathFilter JSONPathKey
    JSONPathRoot JSONPathSubscript JSONValue Join Kwarg LT LTE Lambda Lateral Like Limit LimitOptions Literal
    MatchAgainst Merge Mod Mul NEQ National Neg NestedJSONSelect Not NotNullColumnConstraint Null NullSafeEQ
    NullSafeNEQ Offset OnConflict Or Order Ordered Parameter Paren Pivot Placeholder PositionalColumn Pragma
    PreWhere PrimaryKey PrimaryKeyColumnConstraint Prior Properties PropertyEQ Qualify RawString RegexpILike
    RegexpLike RenameColumn RespectNulls Returning Rollback Rollup Schema Select SetOperation SimilarTo Slice
    Star Sub Subquery Table TableAlias TemporaryProperty Transaction TruncateTable TryCast Tuple Union
    UniqueColumnConstraint Unnest Update Use Values Var When Whens Where Window WindowSpec With WithTableHint
    WithinGroup Xor
"""
_FUNCTIONS = """
    Abs Acos Acosh AddMonths Anonymous AnonymousAggFunc AnyValue ApproxDistinct ApproxQuantile ApproxQuantiles
    ApproxTopK ArgMax ArgMin ArrayAgg ArrayAppend ArrayCompact ArrayConcat ArrayConcatAgg ArrayContains
    ArrayDistinct ArrayExcept ArrayFilter ArrayInsert ArrayIntersect ArrayMax ArrayMin ArrayPosition
    ArrayPrepend ArrayRemove ArrayReverse ArraySize ArraySlice ArraySort ArraySum ArrayToString ArrayUniqueAgg
    ArraysZip Ascii Asin Asinh Atan Atan2 Atanh Avg Base64DecodeString Base64Encode BitLength BitwiseAndAgg
    BitwiseCount BitwiseOrAgg BitwiseXorAgg BoolxorAgg ByteLength CastToStrType Cbrt Ceil CheckJson Chr
    CityHash64 Coalesce CodePointsToString Collate Columns CombinedAggFunc Concat ConcatWs Contains
    ConvertTimezone Corr Cos Cosh Cot Count CountIf CovarPop CovarSamp Csc CumeDist CurrentAccount
    CurrentCatalog CurrentDatabase CurrentDate CurrentDatetime CurrentRole CurrentSchema CurrentTime
    CurrentTimestampLTZ CurrentTimezone CurrentUser CurrentVersion CurrentWarehouse Date DateAdd DateBin
    DateDiff DateFromParts DateFromUnixDate DateSub DateTrunc Datetime DatetimeAdd DatetimeDiff DatetimeSub
    DatetimeTrunc Day DayOfMonth DayOfWeek DayOfWeekIso DayOfYear Dayname Decode DecodeCase Degrees DenseRank
    Elt Encode EndsWith EqualNull Exp Explode ExplodingGenerateSeries Extract Factorial FarmFingerprint First
    FirstValue Flatten Floor Format FromBase FromBase64 FromISO8601Date FromISO8601Timestamp FromJson
    GenerateDateArray GenerateSeries GenerateTimestampArray GetExtract Greatest GroupConcat Grouping GroupingId
    HashAgg Hex Hll Hour Initcap Inline Int64 IsArray IsInf IsNan IsNullValue JSONArray JSONArrayAgg
    JSONArrayAppend JSONArrayContains JSONArrayInsert JSONBExists JSONBObjectAgg JSONBool JSONExists
    JSONExtractArray JSONFormat JSONKeys JSONObject JSONObjectAgg JSONRemove JSONSet JSONStripNulls JSONType
    JSONValueArray JarowinklerSimilarity JustifyDays JustifyHours JustifyInterval Kurtosis Lag Last LastDay
    LastValue LaxBool LaxFloat64 LaxInt64 LaxString Lead Least Left Length Levenshtein Ln Localtime
    Localtimestamp Log LogicalAnd LogicalOr Lower LowerHex MD5 MD5Digest MakeInterval Map MapContainsKey
    MapFromEntries MapKeys Max Median Min Minute Mode Month Monthname MonthsBetween Nanvl Negative NextDay
    Normalize NthValue Ntile Nullif NumberToStr Nvl2 ObjectAgg ObjectInsert Overlay Pad ParseBignumeric
    ParseDatetime ParseIp ParseJSON ParseNumeric ParseTime ParseUrl PercentRank PercentileCont PercentileDisc Pi
    Posexplode PosexplodeOuter Pow PreviousDay Quantile Quarter Radians Rand Randn Randstr RangeBucket Rank
    Reduce RegexpCount RegexpExtract RegexpExtractAll RegexpFullMatch RegexpInstr RegexpReplace RegexpSplit
    RegexpSubstr RegrAvgx RegrAvgy RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy Repeat
    Replace Reverse Right Rint Round RowNumber SHA SHA1Digest SHA2 SHA2Digest SafeAdd SafeConvertBytesToString
    SafeDivide SafeMultiply SafeNegate SafeSubtract Second SessionUser Shuffle Sign Sin Sinh Skewness Soundex
    Space Split SplitPart Sqrt Stack StandardHash StartsWith Stddev StddevPop StddevSamp StrPosition StrToDate
    StrToMap StrToTime StrToUnix String StringToArray StripNullValue Strtok StrtokToArray Struct StructExtract
    Stuff Substring SubstringIndex Sum Systimestamp Tan Tanh Time TimeAdd TimeDiff TimeFromParts TimeSlice
    TimeStrToTime TimeSub TimeToStr TimeToUnix TimeTrunc Timestamp TimestampAdd TimestampDiff TimestampFromParts
    TimestampSub TimestampTrunc ToArray ToBase64 ToBinary ToBoolean ToChar ToDays ToDouble ToNumber ToVariant
    Transform Translate Trim Trunc Try TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDatetime TsOrDsToTime
    TsOrDsToTimestamp Typeof Unhex Unicode Uniform UnixDate UnixMicros UnixMillis UnixSeconds UnixToStr
    UnixToTime Upper UtcDate UtcTime UtcTimestamp Uuid VarMap Variance VariancePop Week WeekOfYear WeightString
    WidthBucket Year YearOfWeek YearOfWeekIso _ExplodeOuter
"""
NODES = parse_list(f"{_SYNTAX} {_FUNCTIONS}")
TYPES = parse_list(
    """
    ARRAY BIGDECIMAL BIGINT BIGSERIAL BINARY BIT BLOB BOOLEAN BPCHAR CHAR DATE DATE32 DATETIME DATETIME2
    DATETIME64 DECFLOAT DECIMAL DECIMAL128 DECIMAL256 DECIMAL32 DECIMAL64 DOUBLE FIXEDSTRING FLOAT GEOGRAPHY
    GEOMETRY INET INT INT128 INT256 INTERVAL IPADDRESS IPV4 IPV6 JSON JSONB LIST LONGTEXT LOWCARDINALITY MAP
    MEDIUMINT MEDIUMTEXT MONEY NCHAR NESTED NULL NVARCHAR OBJECT ROWVERSION SERIAL SMALLDATETIME SMALLINT
    SMALLMONEY STRUCT SUPER TEXT TIME TIMESTAMP TIMESTAMPLTZ TIMESTAMPNTZ TIMESTAMPTZ TIMESTAMP_MS TIMESTAMP_NS
    TIMESTAMP_S TIMETZ TIME_NS TINYINT TINYTEXT UBIGINT UDECIMAL UDOUBLE UINT UINT128 UINT256 UMEDIUMINT
    USMALLINT UTINYINT UUID VARBINARY VARCHAR VARIANT YEAR
    """
)
"""Types whose values have no code of their own, unlike those that users define."""
