// Words of the SQL of DuckDB, for highlighting and completion. Data only.

export const KEYWORDS =
  'all and any as asc asof anti between by case cast collate columns cross current delimiter desc distinct else end escape except exclude exists false filter first fetch following for from full group grouping having ' +
  'if ilike in inner intersect interval into is isnull join lambda last lateral left like limit natural not notnull null nulls of offset on only or order outer over partition pivot positional preceding qualify range recursive replace right rollup row rows ' +
  'sample select semi sets similar some table tablesample then ties to true try_cast unbounded union unpivot using values when where window with within';
export const TYPES =
  'bigint bit blob boolean char date decimal double float hugeint int integer json list map numeric real smallint struct text time timestamp timestamptz tinyint ubigint uhugeint uinteger usmallint utinyint uuid varchar';

/** Functions: name, arguments, meaning. */
export const FUNCTIONS: readonly (readonly [string, string, string])[] = [
  ['avg', 'x', 'mean'], ['count', '*', 'number of rows'], ['sum', 'x', 'sum'], ['min', 'x', 'least value'], ['max', 'x', 'greatest value'],
  ['median', 'x', 'median'], ['quantile_cont', 'x, 0.95', 'quantile, interpolated'], ['stddev', 'x', 'standard deviation'], ['var_samp', 'x', 'variance'],
  ['first', 'x ORDER BY time_requested', 'first value'], ['last', 'x ORDER BY time_requested', 'last value'], ['arg_max', 'value, time_requested', 'value where the other is greatest'], ['arg_min', 'value, time_requested', 'value where the other is least'],
  ['count_if', 'condition', 'rows that meet a condition'], ['approx_count_distinct', 'x', 'number of different values, estimated'], ['any_value', 'x', 'any value'], ['list', 'x', 'values as a list'], ['string_agg', "x, ', '", 'values as a text'], ['histogram', 'x', 'counts by value'], ['corr', 'y, x', 'correlation'], ['regr_slope', 'y, x', 'slope of a line'],
  ['date_trunc', "'hour', time_requested", 'beginning of the hour, day, month'], ['time_bucket', "INTERVAL '15 minutes', time_requested", 'beginning of a piece of time'], ['date_diff', "'second', a, b", 'units between two times'], ['date_part', "'hour', time_requested", 'part of a time'], ['epoch_ms', 'time_requested', 'milliseconds since 1970'], ['now', '', 'current time'], ['today', '', 'current date'], ['to_timestamp', 'seconds', 'time from seconds since 1970'], ['strftime', "time_requested, '%Y-%m-%d'", 'time as text'],
  ['lag', 'x', 'value of the row before'], ['lead', 'x', 'value of the row after'], ['row_number', '', 'number of the row'], ['rank', '', 'rank'],
  ['coalesce', 'x, 0', 'first value that is not NULL'], ['nullif', 'x, 0', 'NULL if equal'], ['greatest', 'a, b', 'greatest of several'], ['least', 'a, b', 'least of several'], ['abs', 'x', 'absolute value'], ['round', 'x, 1', 'rounded'], ['floor', 'x', 'rounded down'], ['ceil', 'x', 'rounded up'], ['sqrt', 'x', 'square root'], ['ln', 'x', 'logarithm'], ['power', 'x, 2', 'power'],
  ['lower', 's', 'in lower case'], ['upper', 's', 'in upper case'], ['length', 's', 'number of characters'], ['contains', "s, 'part'", 'whether a text is in it'], ['regexp_matches', "s, 'pattern'", 'whether a pattern is in it'], ['replace', "s, 'a', 'b'", 'text with another'], ['concat', 'a, b', 'texts together'],
  ['list_contains', "tags, 'tag'", 'whether a list has a value'], ['len', 'l', 'length of a list'], ['unnest', 'l', 'a row for each value of a list'], ['json_extract', "data, '$.readings'", 'part of JSON'], ['json_extract_string', "data, '$.readings.name'", 'text in JSON'], ['json_keys', 'data', 'names in JSON'],
];
