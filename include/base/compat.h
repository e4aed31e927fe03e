/* SPDX-License-Identifier: ISC */
/*
 * The versions of PgBouncer that this program can present itself as (setting compat_version): its
 * version texts, columns and the statistics line. Everything else is the same for all of them.
 */
#ifndef PGUSHER_BASE_COMPAT_H
#define PGUSHER_BASE_COMPAT_H

/*
 * The newest first, which is the default: ROW(name, text, number). The number is the text as
 * PostgreSQL's server_version_num and libpq's PQserverVersion() have it.
 */
#define COMPAT_VERSIONS_OF(ROW)                                                                \
	ROW(COMPAT_1_26_1, "1.26.1", "12601")                                                  \
	ROW(COMPAT_1_25_2, "1.25.2", "12502")

#define COMPAT_NAME(name, text, number) name,
enum compat_version { COMPAT_VERSIONS_OF(COMPAT_NAME) COMPAT_VERSIONS };
#undef COMPAT_NAME

/* Returns the number of the version as text, such as "1.26.1". Static. */
static inline const char *compat_text(enum compat_version version)
{
#define COMPAT_TEXT(name, text, number) [name] = (text),
	static const char *const texts[COMPAT_VERSIONS] = {COMPAT_VERSIONS_OF(COMPAT_TEXT)};
#undef COMPAT_TEXT

	return texts[version];
}

/* Returns whether this version has the counter of client logins, in columns and in the log. */
static inline _Bool compat_counts_logins(enum compat_version version)
{
	return version != COMPAT_1_25_2;
}

#endif
