/* SPDX-License-Identifier: ISC */
#include "session/state/functions_query.h"

#include "wire/sql.h"

/*
 * One Query is one transaction, so SET LOCAL ends with it. Patterns stand in dollar quotes, since the
 * client may have changed standard_conforming_strings.
 */
static const char before[] = "SET LOCAL search_path TO pg_catalog, pg_temp;"
			     "SET LOCAL statement_timeout TO 0;";
static const char no_compiler[] = "SET LOCAL jit TO off;";

/* --- has anything changed? ---------------------------------------------------------------- */

/*
 * The number of rows of each catalog and the sum of the transactions that wrote them: every change
 * adds a row of a later transaction.
 */
#define PRINT_OF(catalog, condition)                                                           \
	"(SELECT concat(count(*), '.', sum(xmin::text::bigint)) FROM " catalog condition ")"
#define OF_USERS " WHERE oid >= 16384"

static const char print_of_catalog[] =
	"WITH RECURSIVE print AS (SELECT concat_ws('.'," PRINT_OF(
		"pg_proc", OF_USERS) "," PRINT_OF("pg_trigger", "") "," PRINT_OF("pg_rewrite",
		OF_USERS) "," PRINT_OF("pg_attrdef", "") "," PRINT_OF("pg_constraint",
		"") "," PRINT_OF("pg_class", OF_USERS) "," PRINT_OF("pg_type",
		OF_USERS) "," PRINT_OF("pg_operator", OF_USERS) "," PRINT_OF("pg_cast",
		OF_USERS) "," PRINT_OF("pg_amproc", OF_USERS) "," PRINT_OF("pg_policy",
		"") "," PRINT_OF("pg_inherits", "") "," PRINT_OF("pg_event_trigger",
		"") ") AS state),";

/* --- which functions have such words? ----------------------------------------------------- */

/* A body of SQL has no source (version 14 and later). Functions in C cannot be read. */
static const char sources_begin[] =
	"source AS (SELECT p.oid, l.lanname IN ('sql','plpgsql') AS plain, lower(";
static const char source_text[] = "p.prosrc";
static const char source_text_or_body[] =
	"CASE WHEN p.prosqlbody IS NULL THEN p.prosrc ELSE pg_get_function_sqlbody(p.oid) END";
static const char sources_end[] =
	") AS text FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang"
	" WHERE p.oid >= 16384 AND l.lanname NOT IN ('c','internal')"
	" AND (SELECT state FROM print) <> ";

/*
 * `start` is what may precede a command: nothing that ends an expression, since UPDATE and others have
 * a SET too. It may be in a string that is executed. Other languages have it in strings only.
 * set_config(..., true) ends with the transaction.
 */
static const char seeds[] =
	"), worded AS (SELECT oid, plain, text,"
	" CASE WHEN strpos(text, 'set_config') > 0 THEN strpos(regexp_replace(text,"
	" $r$set_config\\s*\\([^;()]*(\\([^;()]*\\)[^;()]*)*,\\s*true\\s*\\)$r$, '', 'g'),"
	" 'set_config') > 0 ELSE false END AS configures,"
	" CASE WHEN plain THEN"
	" $r$(?:^|[;'$(>/]|\\\\[a-z]|--[^\\n]*\\n|\\m(?:begin|then|else|loop|atomic))\\s*$r$"
	" ELSE $r$(?:^|[]\\[\"'`{;$(>/,]|\\\\[a-z]|\\n)\\s*$r$ END AS start FROM source),"
	" seed AS (SELECT oid, text, start, mask FROM (SELECT oid, text, start,"
	" CASE WHEN configures OR (strpos(text, 'set') > 0 AND text ~ (start ||"
	" $r$(re)?set\\M(?!\\s+(local|transaction|constraints)\\M)$r$))"
	" OR (strpos(text, 'pg_settings') > 0 AND text ~ $r$update\\s.*pg_settings$r$)"
	" THEN 1 ELSE 0 END"
	" + CASE WHEN strpos(text, 'temp') > 0 AND text ~"
	" $r$\\m(create|into|replace|local|global)\\s+temp(orary)?\\M|/\\s*temp(orary)?\\M|pg_temp$r$"
	" THEN 2 ELSE 0 END"
	" + CASE WHEN strpos(replace(text, 'advisory_xact', ''), 'advisory') > 0"
	" THEN 4 ELSE 0 END"
	" + CASE WHEN strpos(text, 'hold') > 0 AND text ~ $r$\\mwith\\s+hold\\M$r$"
	" THEN 8 ELSE 0 END"
	" + CASE WHEN strpos(text, 'prepare') > 0 AND text ~ (start ||"
	" $r$prepare\\M(?!\\s+transaction\\M)$r$) THEN 16 ELSE 0 END"
	" + CASE WHEN strpos(text, 'listen') > 0 AND text ~ (start || $r$(un)?listen\\M$r$)"
	" THEN 32 ELSE 0 END"
	" + CASE WHEN strpos(text, 'load') > 0 AND text ~ (start || $r$load\\M$r$)"
	" THEN 64 ELSE 0 END"
	/* The name of the setting is not in the source. */
	" + CASE WHEN configures AND text ~ $r$set_config\\s*\\(\\s*(?!e?'[^']*'(::text)?\\s*,)$r$"
	" OR (strpos(text, 'set') > 0 AND text ~ (start ||"
	" $r$set(\\s+session)?\\s*([|'%]|\\s[^\"a-z_\\s]|\\s\\s*[\"a-z0-9_.$]*['%])$r$))"
	" THEN 128 ELSE 0 END AS mask"
	" FROM worded) AS w WHERE mask > 0),"
	" setting AS (SELECT DISTINCT"
	" (regexp_matches(text, $r$set_config\\s*\\(\\s*e?'([^'.]+[.][^']+)'$r$, 'g'))[1] AS name"
	" FROM seed WHERE mask & 1 > 0 UNION SELECT (regexp_matches(text, start ||"
	" $r$set\\s+(?:session\\s+)?([a-z0-9_$\"]+[.][a-z0-9_$.\"]+)$r$, 'g'))[1]"
	" FROM seed WHERE mask & 1 > 0),";

/* --- and what calls them? ----------------------------------------------------------------- */

/*
 * What uses something that is bad: by its dependencies, as a partition or by a foreign key, whose
 * actions fire triggers; or a function whose source has its name. Catalogs by their OIDs, which never
 * change: 1247 pg_type, 1255 pg_proc, 1259 pg_class, 2602 pg_amop, 2603 pg_amproc, 2604 pg_attrdef,
 * 2606 pg_constraint, 2617 pg_operator, 2618 pg_rewrite, 2620 pg_trigger, 3256 pg_policy, 3466
 * pg_event_trigger. Of a table, only views and functions that use it are followed. The type of the
 * server itself has no name that a text must have.
 */
static const char callers[] =
	" bad(class, id, mask) AS (SELECT '1255'::oid, oid, mask FROM seed"
	" UNION SELECT to_class, to_id, mask FROM bad, LATERAL ("
	"SELECT CASE WHEN d.classid IN (1255, 1247, 2617, 3466) THEN d.classid"
	" WHEN d.classid IN (2602, 2603) OR con.contypid > 0 OR c.relkind = 'c' THEN 1247"
	" ELSE 1259 END::oid AS to_class,"
	" CASE WHEN d.classid IN (1255, 1247, 2617, 3466) THEN d.objid"
	" WHEN d.classid = 2618 THEN r.ev_class WHEN d.classid = 2604 THEN a.adrelid"
	" WHEN con.contypid > 0 THEN con.contypid WHEN d.classid = 2606 THEN con.conrelid"
	" WHEN d.classid = 2620 THEN t.tgrelid WHEN d.classid = 3256 THEN pol.polrelid"
	" WHEN d.classid = 2602 THEN amop.amoplefttype"
	" WHEN d.classid = 2603 THEN amproc.amproclefttype"
	" WHEN c.relkind = 'c' THEN c.reltype ELSE coalesce(i.indrelid, c.oid) END AS to_id"
	" FROM pg_depend AS d"
	" LEFT JOIN pg_rewrite AS r ON d.classid = 2618 AND r.oid = d.objid"
	" LEFT JOIN pg_attrdef AS a ON d.classid = 2604 AND a.oid = d.objid"
	" LEFT JOIN pg_constraint AS con ON d.classid = 2606 AND con.oid = d.objid"
	" LEFT JOIN pg_trigger AS t ON d.classid = 2620 AND t.oid = d.objid"
	" LEFT JOIN pg_policy AS pol ON d.classid = 3256 AND pol.oid = d.objid"
	" LEFT JOIN pg_amop AS amop ON d.classid = 2602 AND amop.oid = d.objid"
	" LEFT JOIN pg_amproc AS amproc ON d.classid = 2603 AND amproc.oid = d.objid"
	" LEFT JOIN pg_class AS c ON d.classid = 1259 AND c.oid = d.objid"
	" LEFT JOIN pg_index AS i ON i.indexrelid = c.oid"
	" WHERE d.refclassid = bad.class AND d.refobjid = bad.id"
	" AND (bad.class <> 1259 OR d.classid IN (1255, 2618, 3256))"
	" UNION ALL SELECT '1247'::oid, unnest(ARRAY["
	"CASE WHEN castsource >= 16384 OR casttarget < 16384 THEN castsource END,"
	" CASE WHEN casttarget >= 16384 OR castsource < 16384 THEN casttarget END]) FROM pg_cast"
	" WHERE bad.class = 1255 AND castfunc = bad.id"
	" UNION ALL SELECT '1259'::oid, inhparent FROM pg_inherits"
	" WHERE bad.class = 1259 AND inhrelid = bad.id"
	" UNION ALL SELECT '1259'::oid, confrelid FROM pg_constraint"
	" WHERE bad.class = 1259 AND conrelid = bad.id AND contype = 'f'"
	" UNION ALL SELECT '1255'::oid, s.oid FROM source AS s, (SELECT lower(coalesce("
	"(SELECT proname FROM pg_proc WHERE oid = bad.id AND bad.class = 1255),"
	" (SELECT relname FROM pg_class WHERE oid = bad.id AND bad.class = 1259),"
	" (SELECT typname FROM pg_type WHERE oid = bad.id AND bad.class = 1247),"
	" (SELECT oprname FROM pg_operator WHERE oid = bad.id AND bad.class = 2617))"
	"::text) AS name OFFSET 0) AS n WHERE strpos(s.text, n.name) > 0 AND (bad.class = 2617"
	" OR s.text ~ concat($r$(^|[^a-z0-9_$])$r$,"
	" regexp_replace(n.name, $r$([^a-z0-9_])$r$, $r$\\\\\\1$r$, 'g'),"
	" $r$($|[^a-z0-9_$])$r$))"
	") AS e WHERE to_id > 0 AND class <> 3466 AND (class <> 1247 OR id >= 16384)),";

/* --- the answer --------------------------------------------------------------------------- */

/*
 * The server may convert to an encoding that lacks letters of a name: of such a name, the longest part
 * in ASCII is enough. Event triggers run behind commands that define something.
 */
static const char answer[] =
	" called AS (SELECT name, bit_or(mask) AS mask, bool_or(nameless) AS nameless FROM"
	" (SELECT coalesce(p.proname, c.relname, t.typname, o.oprname)::text AS name, mask,"
	" class = 1247 AND id < 16384 AS nameless FROM bad"
	" LEFT JOIN pg_proc AS p ON class = 1255 AND p.oid = id"
	" LEFT JOIN pg_class AS c ON class = 1259 AND c.oid = id"
	" LEFT JOIN pg_type AS t ON class = 1247 AND t.oid = id"
	" LEFT JOIN pg_operator AS o ON class = 2617 AND o.oid = id WHERE class <> 3466"
	" UNION ALL SELECT unnest(string_to_array('alter,comment,create,drop,grant,import,into,"
	"reassign,refresh,reindex,revoke,security', ',')), mask, false FROM bad"
	" WHERE class = 3466) AS every GROUP BY 1),"
	" shown AS (SELECT name, mask, nameless, (SELECT part FROM regexp_split_to_table("
	"replace(name, '\"', '\"\"'), $r$[^\\x01-\\x7f]+$r$) AS part"
	" ORDER BY length(part) DESC LIMIT 1) AS part FROM called)"
	" SELECT 'F', state, '0' FROM print"
	" UNION ALL (SELECT CASE WHEN nameless OR part = '' THEN 'E' WHEN part = name THEN 'N'"
	" ELSE 'P' END, part, mask::text FROM shown LIMIT %d)"
	" UNION ALL (SELECT 'S', name, '0' FROM setting"
	" WHERE name !~ $r$[^\\x01-\\x7f]$r$ LIMIT %d)";

void functions_query_write(struct buffer *sql, int version, const char *print)
{
	buffer_printf(sql, "%s%s%s%s%s%s", before, version >= 12 ? no_compiler : "",
		print_of_catalog, sources_begin,
		version >= 14 ? source_text_or_body : source_text, sources_end);
	sql_append_literal(sql, print);
	buffer_printf(sql, "%s%s", seeds, callers);
	buffer_printf(sql, answer, FUNCTIONS_ROWS_MAX, FUNCTIONS_ROWS_MAX);
	buffer_append(sql, "", 1);
}
