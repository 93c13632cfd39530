"""Functions of each database that compute a value from their arguments and have no other effect.

Functions that wait, read files, hosts, settings or other tables, run SQL, or change a sequence or session are left out.
"""

from sayso.core.policy.functions.sql.lexing import parse_list

_ALL = """
abs avg coalesce count cume_dist dense_rank exp first_value floor lag last_value lead lower ltrim max min ntile nullif
percent_rank power rank replace round row_number rtrim sign sqrt sum trim upper
"""
"""Functions that all databases have."""

_TRIGONOMETRY = "acos asin atan atan2 cos cot degrees ln log pi radians sin tan"
_MATH = f"{_TRIGONOMETRY} ceil ceiling greatest least mod pow"
_TEXT = "char_length concat concat_ws instr left length lpad repeat reverse right rpad substr substring"
_BITS = "bit_and bit_or bit_xor bool_and bool_or every"
_STATISTICS = "corr covar_pop covar_samp stddev stddev_pop stddev_samp var_pop var_samp variance"
_REGRESSION = "regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy"
_NOW = "current_date current_time current_timestamp localtime localtimestamp"
_USER = "current_user session_user user"

_POSTGRES = f"""
{_MATH} {_TEXT} {_BITS} {_STATISTICS} {_REGRESSION} {_NOW} {_USER} age array array_agg array_append array_cat
array_length array_lower array_ndims array_position array_positions array_prepend array_remove array_replace
array_to_json array_to_string array_upper ascii bit_length btrim cardinality cbrt character_length chr clock_timestamp
current_catalog current_database current_schema date date_bin date_part date_trunc decode div encode extract factorial
format gcd gen_random_uuid generate_series generate_subscripts grouping initcap int4 isfinite json_agg
json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each
json_each_text json_extract_path json_extract_path_text json_object json_object_agg json_object_keys json_strip_nulls
json_typeof jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array
jsonb_build_object jsonb_each jsonb_each_text jsonb_exists jsonb_extract_path jsonb_extract_path_text jsonb_insert
jsonb_object jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_query jsonb_pretty jsonb_set
jsonb_strip_nulls jsonb_typeof justify_days justify_hours justify_interval lcm make_date make_interval make_time
make_timestamp make_timestamptz md5 mode now nth_value num_nonnulls num_nulls octet_length overlay percentile_cont
percentile_disc phraseto_tsquery plainto_tsquery position quote_ident quote_literal quote_nullable random regexp_count
regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
regexp_substr row row_to_json scale sha224 sha256 sha384 sha512 similarity sinh cosh tanh split_part starts_with
statement_timestamp string_agg string_to_array string_to_table strpos timezone to_char to_date to_hex to_json to_jsonb
to_number to_timestamp to_tsquery to_tsvector transaction_timestamp translate trim_array trunc ts_headline ts_rank
ts_rank_cd unistr unnest version websearch_to_tsquery width_bucket
"""
_REDSHIFT = f"""
{_MATH} {_TEXT} {_BITS} {_STATISTICS} {_USER} current_date add_months approximate ascii bpcharcmp btrim cbrt charindex
chr convert_timezone date date_cmp date_part date_trunc dateadd datediff dlog10 dlog1 extract getdate initcap
is_valid_json is_valid_json_array isnull json_array_length json_extract_array_element_text json_extract_path_text
json_parse json_serialize last_day len listagg md5 median months_between next_day nth_value nvl nvl2 octet_length
percentile_cont percentile_disc position quote_ident quote_literal random ratio_to_report regexp_count regexp_instr
regexp_replace regexp_substr sha sha1 sha2 split_part sysdate strpos strtol textlen timezone to_char to_date to_hex
to_number to_timestamp translate trunc
"""
_MYSQL = f"""
{_MATH} {_TEXT} {_STATISTICS} {_NOW} bit_and bit_or bit_xor adddate addtime any_value ascii bin bit_count bit_length
char character_length coercibility conv convert convert_tz crc32 curdate current_user curtime database date date_add
date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear elt export_set extract field find_in_set format
from_base64 from_days from_unixtime group_concat grouping hex hour if ifnull inet_aton inet_ntoa insert interval is_uuid
isnull json_array json_array_append json_array_insert json_arrayagg json_contains json_contains_path json_depth
json_extract json_insert json_keys json_length json_merge_patch json_merge_preserve json_object json_objectagg
json_overlaps json_pretty json_quote json_remove json_replace json_search json_set json_type json_unquote json_valid
json_value last_day lcase locate log10 log2 make_set makedate maketime md5 microsecond mid minute month monthname now
nth_value oct octet_length ord period_add period_diff position quarter quote rand regexp_instr regexp_like
regexp_replace regexp_substr row schema sec_to_time second sha sha1 sha2 soundex space std str_to_date strcmp subdate
substring_index subtime sysdate time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_base64
to_days to_seconds truncate ucase unhex unix_timestamp utc_date utc_time utc_timestamp uuid version week weekday
weekofyear weight_string year yearweek
"""
_ORACLE = f"""
{_MATH} {_STATISTICS} {_REGRESSION} add_months any_value ascii asciistr bitand cardinality chr concat cosh current_date
current_timestamp dbtimezone decode dump extract from_tz grouping grouping_id hextoraw initcap instr json_array
json_arrayagg json_exists json_object json_objectagg json_query json_value last last_day length lengthb listagg
localtimestamp lpad median months_between nanvl new_time next_day nls_initcap nls_lower nls_upper nth_value
numtodsinterval numtoyminterval nvl nvl2 ora_hash percentile_cont percentile_disc ratio_to_report rawtohex regexp_count
regexp_instr regexp_like regexp_replace regexp_substr remainder rpad sessiontimezone sinh soundex standard_hash
stats_mode substr substrb sys_connect_by_path sys_extract_utc sys_guid sysdate systimestamp tanh to_binary_double
to_char to_clob to_date to_dsinterval to_number to_timestamp to_timestamp_tz to_yminterval translate trunc tz_offset uid
unistr user vsize width_bucket
"""
_SQLITE = f"""
{_TRIGONOMETRY} {_NOW} acosh asinh atanh cosh sinh tanh ceil ceiling changes char concat concat_ws date datetime format
glob group_concat hex ifnull iif instr json json_array json_array_length json_each json_extract json_group_array
json_group_object json_insert json_object json_patch json_quote json_remove json_replace json_set json_tree json_type
json_valid julianday length like likelihood likely log10 log2 mod nth_value octet_length pow printf quote random soundex
sqlite_version strftime string_agg substr substring time timediff total trunc typeof unhex unicode unixepoch unlikely
"""
_TSQL = f"""
{_TRIGONOMETRY} app_name approx_count_distinct ascii atn2 avg binary_checksum ceiling char charindex checksum
checksum_agg choose concat concat_ws convert count_big current_timestamp current_user datalength date_bucket dateadd
datediff datediff_big datefromparts datename datepart datetime2fromparts datetimefromparts datetrunc day db_name
difference eomonth format getdate getutcdate greatest grouping grouping_id hashbytes iif isdate isjson isnull isnumeric
json_array json_object json_query json_value least left len log10 month nchar newid parse parsename patindex
percentile_cont percentile_disc quotename rand replicate reverse right session_user smalldatetimefromparts soundex space
square stdev stdevp str string_agg string_escape string_split stuff substring suser_sname switchoffset sysdatetime
sysdatetimeoffset system_user sysutcdatetime timefromparts todatetimeoffset translate try_convert try_parse unicode user
user_name var varp year
"""
_SNOWFLAKE = f"""
{_MATH} {_TEXT} {_STATISTICS} {_REGRESSION} {_NOW} current_user current_role current_warehouse current_database
current_schema current_account add_months any_value approx_count_distinct approx_percentile array_agg array_append
array_cat array_compact array_construct array_contains array_distinct array_insert array_intersection array_position
array_size array_slice array_to_string as_array as_char as_date as_integer as_object as_varchar ascii
base64_decode_string base64_encode bitand bitand_agg bitor bitor_agg bitxor bitxor_agg boolor_agg booland_agg
boolxor_agg charindex check_json chr collate contains convert_timezone cosh sinh tanh date date_from_parts date_part
date_trunc dateadd datediff dayname dayofmonth dayofweek dayofweekiso dayofyear day decode div0 div0null editdistance
endswith equal_null extract flatten get get_path getdate grouping grouping_id hash hash_agg hex_encode hll hour iff
ifnull ilike initcap insert is_array is_boolean is_date is_integer is_null_value is_object is_varchar
jarowinkler_similarity json_extract_path_text kurtosis last_day len like listagg max_by md5 median min_by minute mode
month monthname months_between next_day nth_value nullifzero nvl nvl2 object_agg object_construct object_delete
object_insert object_keys object_pick octet_length parse_ip parse_json parse_url percentile_cont percentile_disc
position previous_day quarter random randstr ratio_to_report regexp_count regexp_instr regexp_like regexp_replace
regexp_substr rlike second sha1 sha2 skew soundex space split split_part square startswith strip_null_value strtok
strtok_to_array sysdate time time_from_parts time_slice timeadd timediff timestamp_from_parts timestampadd timestampdiff
to_array to_binary to_boolean to_char to_date to_decimal to_double to_json to_number to_numeric to_object to_time
to_timestamp to_timestamp_ltz to_timestamp_ntz to_timestamp_tz to_varchar to_variant translate trunc truncate
try_parse_json try_to_boolean try_to_date try_to_decimal try_to_double try_to_number try_to_numeric try_to_time
try_to_timestamp typeof uniform uuid_string week weekiso width_bucket year yearofweek zeroifnull
"""
_BIGQUERY = f"""
{_MATH} {_TEXT} {_STATISTICS} any_value approx_count_distinct approx_quantiles approx_top_count array array_agg
array_concat array_concat_agg array_length array_reverse array_to_string ascii bit_and bit_count bit_or bit_xor bool
byte_length cbrt character_length chr code_points_to_string contains_substr cosh countif current_date current_datetime
current_time current_timestamp date date_add date_diff date_from_unix_date date_sub date_trunc datetime datetime_add
datetime_diff datetime_sub datetime_trunc div edit_distance ends_with extract farm_fingerprint format format_date
format_datetime format_time format_timestamp from_base64 from_hex generate_array generate_date_array
generate_timestamp_array generate_uuid grouping ieee_divide if ifnull initcap int64 is_inf is_nan json_array
json_extract json_extract_array json_extract_scalar json_extract_string_array json_object json_query json_query_array
json_type json_value json_value_array last_day lax_bool lax_float64 lax_int64 lax_string log10 logical_and logical_or
max_by md5 min_by normalize nth_value octet_length parse_bignumeric parse_date parse_datetime parse_json parse_numeric
parse_time parse_timestamp percentile_cont percentile_disc rand range_bucket regexp_contains regexp_extract
regexp_extract_all regexp_instr regexp_replace regexp_substr safe_add safe_convert_bytes_to_string safe_divide
safe_multiply safe_negate safe_offset safe_ordinal safe_subtract offset ordinal session_user sha1 sha256 sha512 sinh
soundex split starts_with string string_agg strpos struct tanh time time_add time_diff time_sub time_trunc timestamp
timestamp_add timestamp_diff timestamp_micros timestamp_millis timestamp_seconds timestamp_sub timestamp_trunc to_base64
to_hex to_json to_json_string translate trunc unix_date unix_micros unix_millis unix_seconds unnest
"""
_PRESTO = f"""
{_MATH} {_STATISTICS} {_NOW} current_user bool_and bool_or every char_length all_match any_match approx_distinct
approx_percentile arbitrary array array_agg array_distinct array_except array_intersect array_join array_max array_min
array_position array_remove array_sort array_union arrays_overlap at_timezone bit_count bitwise_and bitwise_and_agg
bitwise_not bitwise_or bitwise_or_agg bitwise_xor cardinality cbrt chr codepoint concat concat_ws contains cosh count_if
current_timezone date date_add date_diff date_format date_parse date_trunc day day_of_month day_of_week day_of_year dow
doy e element_at extract filter flatten format format_datetime from_base64 from_hex from_iso8601_date
from_iso8601_timestamp from_unixtime geometric_mean grouping hamming_distance histogram hour if is_finite is_infinite
is_nan json_array_contains json_array_get json_array_length json_extract json_extract_scalar json_format json_parse
json_size kurtosis last_day_of_month length levenshtein_distance log10 log2 lpad map map_agg map_concat map_entries
map_filter map_from_entries map_keys map_values max_by md5 min_by minute month multimap_agg ngrams none_match now
nth_value parse_datetime position quarter random reduce regexp_count regexp_extract regexp_extract_all regexp_like
regexp_replace regexp_split repeat reverse row rpad second sequence sha1 sha256 sha512 shuffle skewness slice split
split_part split_to_map starts_with strpos substr substring tanh timezone_hour timezone_minute to_base64 to_hex
to_iso8601 to_unixtime transform translate truncate try typeof unnest url_decode url_encode url_extract_fragment
url_extract_host url_extract_parameter url_extract_path url_extract_port url_extract_protocol url_extract_query uuid
week week_of_year width_bucket word_stem xxhash64 year year_of_week yow zip zip_with
"""
_SPARK = f"""
{_MATH} {_TEXT} {_STATISTICS} {_REGRESSION} {_BITS} current_date current_timestamp current_user current_database
current_catalog localtimestamp acosh asinh atanh add_months aggregate any_value approx_count_distinct approx_percentile
array array_agg array_append array_compact array_contains array_distinct array_except array_intersect array_join
array_max array_min array_position array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip
ascii base64 bin bit_count bit_length bround btrim cardinality cbrt char character_length chr collect_list collect_set
conv cosh count_if crc32 csc curdate date date_add date_diff date_format date_from_unix_date date_part date_sub
date_trunc dateadd datediff datepart day dayofmonth dayofweek dayofyear decode element_at elt encode endswith explode
explode_outer extract factorial filter find_in_set first flatten forall format_number format_string from_csv from_json
from_unixtime from_utc_timestamp get get_json_object grouping grouping_id hash hex histogram_numeric hour hypot if
ifnull initcap inline inline_outer int isnan isnotnull isnull json_array_length json_object_keys json_tuple kurtosis
last last_day lcase levenshtein locate log10 log1p log2 make_date make_interval make_timestamp map map_concat
map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with max_by md5
mean median min_by minute mode month months_between named_struct nanvl negative next_day now nth_value nullifzero nvl
nvl2 octet_length overlay parse_url percentile percentile_approx percentile_cont percentile_disc pmod posexplode
posexplode_outer position printf quarter rand randn reduce regexp regexp_count regexp_extract regexp_extract_all
regexp_instr regexp_like regexp_replace regexp_substr rint rlike schema_of_json second sentences sequence sha sha1 sha2
shuffle sinh size skewness slice some sort_array soundex space split split_part stack startswith std str_to_map string
struct substring_index tanh timestamp timestamp_micros timestamp_millis timestamp_seconds to_char to_csv to_date to_json
to_number to_timestamp to_unix_timestamp to_utc_timestamp transform transform_keys transform_values translate trunc
try_add try_avg try_divide try_multiply try_subtract try_sum try_to_number try_to_timestamp typeof ucase unbase64 unhex
unix_date unix_micros unix_millis unix_seconds unix_timestamp url_decode url_encode uuid weekday weekofyear width_bucket
window xxhash64 year zeroifnull zip_with
"""
_DUCKDB = f"""
{_MATH} {_TEXT} {_STATISTICS} {_REGRESSION} {_BITS} current_date current_time current_timestamp localtime localtimestamp
age any_value approx_count_distinct approx_quantile arbitrary arg_max arg_min array array_agg array_contains
array_distinct array_length array_slice array_to_string array_value ascii base64 bin bit_count bit_length cardinality
cbrt century chr coalesce columns contains cosh count_if count_star current_database current_schema date date_add
date_diff date_part date_sub date_trunc datediff datepart day dayname dayofmonth dayofweek dayofyear decade decode
element_at encode ends_with entropy epoch epoch_ms even extract factorial favg filter first flatten format
formatReadableSize from_base64 from_json fsum gamma gcd gen_random_uuid generate_series greatest_common_divisor grouping
hash hex histogram hour if ifnull isfinite isinf isnan isodow isoyear json json_array json_array_length json_contains
json_each json_extract json_extract_path json_extract_path_text json_extract_string json_group_array json_group_object
json_keys json_object json_quote json_structure json_tree json_type json_valid jaccard jaro_similarity kurtosis last
last_day lcase lcm len levenshtein lgamma list list_aggregate list_append list_apply list_concat list_contains
list_distinct list_extract list_filter list_has list_max list_min list_position list_prepend list_reduce list_reverse
list_slice list_sort list_sum list_transform list_unique list_value list_zip log10 log2 mad make_date make_time
make_timestamp map map_entries map_extract map_from_entries map_keys map_values max_by md5 mean median microsecond
millisecond min_by minute mode month monthname multiply nextafter now nth_value nvl octet_length ord parse_path position
prefix printf product quantile quantile_cont quantile_disc quarter random range regexp_extract regexp_extract_all
regexp_full_match regexp_matches regexp_replace regexp_split_to_array reservoir_quantile row row_to_json second sem sha1
sha256 sinh skewness split split_part starts_with stem strftime string_agg string_split string_to_array strip_accents
strlen strpos strptime struct_extract struct_insert struct_pack suffix tanh time_bucket to_base64 to_days to_hex
to_hours to_json to_microseconds to_minutes to_months to_seconds to_timestamp to_weeks to_years today transform
translate trunc try_strptime typeof ucase unbin unhex unicode unnest url_decode url_encode uuid version week weekday
weekofyear xor year yearweek
"""
_CLICKHOUSE = f"""
{_MATH} {_TEXT} addDays addHours addMinutes addMonths addQuarters addSeconds addWeeks addYears any anyHeavy anyLast
argMax argMin array arrayAll arrayAvg arrayConcat arrayCount arrayCumSum arrayDifference arrayDistinct arrayElement
arrayEnumerate arrayExists arrayFilter arrayFirst arrayFlatten arrayIntersect arrayJoin arrayMap arrayMax arrayMin
arrayReduce arrayReverse arraySlice arraySort arrayStringConcat arraySum arrayUniq arrayZip ascii assumeNotNull avgIf
avgWeighted base64Decode base64Encode bitAnd bitCount bitOr bitXor cbrt char cityHash64 concatWithSeparator corr cosh
countEqual countIf countSubstrings covarPop covarSamp date dateAdd dateDiff dateName dateSub dateTrunc date_add
date_diff date_sub date_trunc dense_rank divide domain domainWithoutWWW empty endsWith equals exp10 exp2 extract
extractAll extractURLParameter format formatDateTime formatReadableQuantity formatReadableSize formatReadableTimeDelta
fromUnixTimestamp generateUUIDv4 geoDistance greatCircleDistance greater groupArray groupArraySample groupBitAnd
groupBitOr groupConcat groupUniqArray grouping halfMD5 has hasAll hasAny hex if ifNull ilike indexOf intDiv intDivOrZero
isFinite isInfinite isNaN isNotNull isNull JSONExtract JSONExtractArrayRaw JSONExtractBool JSONExtractFloat
JSONExtractInt JSONExtractKeys JSONExtractRaw JSONExtractString JSONHas JSONLength JSON_QUERY JSON_VALUE kurtPop
kurtSamp lagInFrame lcase leadInFrame length lengthUTF8 less like log10 log1p log2 lowerUTF8 map mapContains mapKeys
mapValues match MD5 median medianExact minus modulo multiIf multiply murmurHash3_64 negate neighbor notEmpty notEquals
notLike now now64 nth_value nullIf parseDateTime parseDateTimeBestEffort parseDateTimeBestEffortOrNull path plus
position positionCaseInsensitive quantile quantileExact quantileIf quantiles quantileTDigest rand range regexpExtract
replaceAll replaceOne replaceRegexpAll replaceRegexpOne reverseUTF8 roundBankers runningAccumulate runningDifference
sequenceCount sequenceMatch SHA1 SHA256 sipHash64 skewPop skewSamp sparkbar splitByChar splitByString splitByRegexp
startsWith stddevPop stddevSamp subDate substringUTF8 subtractDays subtractHours subtractMinutes subtractMonths
subtractWeeks subtractYears sumIf sumMap sumWithOverflow timeSlot timestamp toDate toDate32 toDateTime toDateTime64
toDayOfMonth toDayOfWeek toDayOfYear toDecimal128 toDecimal32 toDecimal64 toFixedString toFloat32 toFloat64
toFloat64OrNull toFloat64OrZero toHour toInt128 toInt16 toInt256 toInt32 toInt32OrNull toInt32OrZero toInt64
toInt64OrNull toInt64OrZero toInt8 toIntervalDay toIntervalHour toIntervalMinute toIntervalMonth toIntervalSecond
toIntervalWeek toIntervalYear toISOWeek toISOYear toLowCardinality toMinute toMonday toMonth toNullable toQuarter
toSecond toStartOfDay toStartOfFifteenMinutes toStartOfFiveMinutes toStartOfHour toStartOfInterval toStartOfISOYear
toStartOfMinute toStartOfMonth toStartOfQuarter toStartOfSecond toStartOfWeek toStartOfYear toString toTime toTimeZone
toTypeName toUInt16 toUInt256 toUInt32 toUInt64 toUInt8 toUnixTimestamp toUUID toWeek toYear toYYYYMM toYYYYMMDD today
topK topKWeighted topLevelDomain trimBoth trimLeft trimRight trunc tuple tupleElement ucase unhex uniq uniqCombined
uniqExact uniqHLL12 uniqIf upperUTF8 varPop varSamp windowFunnel xor yesterday
"""

_TEXTS = {
    "": "",
    "athena": _PRESTO,
    "bigquery": _BIGQUERY,
    "clickhouse": _CLICKHOUSE,
    "databricks": _SPARK,
    "duckdb": _DUCKDB,
    "mysql": _MYSQL,
    "oracle": _ORACLE,
    "postgres": _POSTGRES,
    "presto": _PRESTO,
    "redshift": _REDSHIFT,
    "snowflake": _SNOWFLAKE,
    "spark": _SPARK,
    "sqlite": _SQLITE,
    "trino": f"{_PRESTO} listagg json_query json_value json_exists json_object json_array",
    "tsql": _TSQL,
}
FUNCTIONS = {name: parse_list(f"{_ALL} {text}".lower()) for name, text in _TEXTS.items()}
"""The functions by database, in small letters; those under the empty name exist in all databases."""

BARE = parse_list(
    f"{_NOW} {_USER} current_catalog current_database current_role current_schema current_timezone dbtimezone sysdate"
    " sessiontimezone system_user systimestamp uid utc_date utc_time utc_timestamp"
)
"""Functions that are called without parentheses."""
