/* SPDX-License-Identifier: ISC */
#include "daemon/surroundings.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/log_sinks.h"
#include "base/text.h"
#include "daemon/privileges.h"
#include "session/auth/method.h"
#include "session/link/tls_setup.h"

struct survey {
	const struct options *options;
	const struct snapshot *config;
	const struct settings *settings;
	struct problems *problems;
};

static void report(const struct survey *survey, enum problem_severity severity,
	const char *format, ...) __attribute__((format(printf, 3, 4)));
static void report(
	const struct survey *survey, enum problem_severity severity, const char *format, ...)
{
	va_list arguments;
	char text[512];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	problems_add(survey->problems, severity, survey->options->config, 0, "%s", text);
}

static bool is_set(const char *text)
{
	return text && *text;
}

/* --- the machine -------------------------------------------------------------------------- */

static void check_tls(const struct survey *survey)
{
	char why[512];

	if (!tls_setup_check(survey->settings, why, sizeof(why)))
		report(survey, PROBLEM_ERROR, "%s", why);
	else if (!tls_setup_check_servers(survey->settings, why, sizeof(why)))
		report(survey, PROBLEM_WARNING, "no server can be connected to: %s", why);
}

/* Libraries that the configured logins need and that may not be installed. */
static void check_libraries(const struct survey *survey)
{
	char why[512];

	if (!auth_load(survey->config, why, sizeof(why)))
		report(survey, PROBLEM_ERROR, "%s", why);
}

static void check_affinity(const struct survey *survey)
{
	struct core_list list;
	int missing;

	if (!core_list_read(survey->settings->cpu_affinity, &list))
		return;
	missing = core_list_missing(&list);
	if (missing >= 0)
		report(survey, PROBLEM_ERROR,
			"cpu_affinity: this process may use no processor %d", missing);
}

static void check_user(const struct survey *survey)
{
	const char *user =
		survey->options->user ? survey->options->user : survey->settings->user;

	if (user && !privileges_knows_user(user))
		report(survey, PROBLEM_ERROR, "user: there is no system user '%s'", user);
}

static void check_socket_directory(const struct survey *survey)
{
	const char *path = survey->settings->unix_socket_dir;
	struct stat status;

	if (path[0] == '\0' || path[0] == '@')
		return;
	if (stat(path, &status) != 0)
		report(survey, PROBLEM_ERROR, "unix_socket_dir: '%s': %s", path,
			strerror(errno));
	else if (!S_ISDIR(status.st_mode))
		report(survey, PROBLEM_ERROR, "unix_socket_dir: '%s' is not a directory", path);
}

/* The group and the access mode of the Unix socket's file. */
static void check_socket_rights(const struct survey *survey)
{
	const struct settings *settings = survey->settings;
	const char *group = settings->unix_socket_group;
	long long number;

	if (settings->unix_socket_dir[0] == '\0' || settings->unix_socket_dir[0] == '@')
		return;
	if (*group && !getgrnam(group) && !text_to_integer(group, &number))
		report(survey, PROBLEM_ERROR,
			"unix_socket_group: there is no system group '%s'", group);
	if (settings->unix_socket_mode > 0777)
		report(survey, PROBLEM_WARNING,
			"unix_socket_mode: %d is 0%o: octal numbers begin with a 0",
			settings->unix_socket_mode, (unsigned)settings->unix_socket_mode);
}

/* A file that the daemon writes. */
static void check_file(const struct survey *survey, const char *setting, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat status;
	char folder[4096];

	if (stat(path, &status) == 0) {
		if (S_ISDIR(status.st_mode))
			report(survey, PROBLEM_ERROR, "%s: '%s' is a directory", setting, path);
		return;
	}
	if (!slash || slash == path || (size_t)(slash - path) >= sizeof(folder))
		return;
	memcpy(folder, path, (size_t)(slash - path));
	folder[slash - path] = '\0';
	if (stat(folder, &status) != 0)
		report(survey, PROBLEM_ERROR, "%s: '%s': %s", setting, folder, strerror(errno));
}

static void check_files(const struct survey *survey)
{
	const struct settings *settings = survey->settings;

	check_file(survey, "logfile", settings->logfile);
	check_file(survey, "pidfile", settings->pidfile);
	if (survey->options->background && settings->pidfile[0] == '\0')
		report(survey, PROBLEM_ERROR, "daemon needs pidfile configured");
	if (*settings->resolv_conf && access(settings->resolv_conf, R_OK) != 0)
		report(survey, PROBLEM_WARNING, "resolv_conf: '%s': %s", settings->resolv_conf,
			strerror(errno));
}

static void check_address(const struct survey *survey, const char *item)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *found;
	const int error = getaddrinfo(item, NULL, &hints, &found);

	if (error == 0)
		freeaddrinfo(found);
	else
		report(survey, PROBLEM_ERROR, "listen_addr: '%s': %s", item,
			gai_strerror(error));
}

static void check_addresses(const struct survey *survey)
{
	const struct settings *settings = survey->settings;
	const char *at = settings->listen_addr;
	char item[256];

	if (*at == '\0' && settings->unix_socket_dir[0] == '\0')
		report(survey, PROBLEM_ERROR,
			"nowhere to listen on: neither listen_addr nor unix_socket_dir is set");
	while (text_next_item(&at, ", \t", item, sizeof(item), NULL)) {
		if (strcmp(item, "*") != 0)
			check_address(survey, item);
	}
}

static void check_syslog(const struct survey *survey)
{
	const char *facility = survey->settings->syslog_facility;

	if (*facility && !log_sinks_know_facility(facility))
		report(survey, PROBLEM_WARNING,
			"syslog_facility: there is no '%s', so it is daemon: allowed is auth, "
			"authpriv, daemon, user, local0 to local7",
			facility);
}

/* --- logins ------------------------------------------------------------------------------- */

/* With auth_type any each database must have a forced user. */
static void check_forced_users(const struct survey *survey)
{
	const struct database_config *database;

	for (size_t i = 0; (database = snapshot_database(survey->config, i)) != NULL; i++) {
		if (!database->user)
			report(survey, PROBLEM_WARNING,
				"auth_type any: no user can log in to %s, which has no user=",
				database->name);
	}
}

static void check_secrets(const struct survey *survey)
{
	const struct settings *settings = survey->settings;
	const struct database_config *database;

	if (is_set(settings->auth_file) || is_set(settings->auth_user))
		return;
	for (size_t i = 0; (database = snapshot_database(survey->config, i)) != NULL; i++) {
		if (database->auth_user)
			return;
	}
	report(survey, PROBLEM_WARNING,
		"no user can log in: neither auth_file nor auth_user is set");
}

static void check_auth_type(const struct survey *survey)
{
	const struct settings *settings = survey->settings;

	switch (settings->auth_type) {
	case AUTH_TYPE_ANY:
		check_forced_users(survey);
		break;
	case AUTH_TYPE_LDAP:
		if (!is_set(settings->auth_ldap_options))
			report(survey, PROBLEM_WARNING,
				"auth_type ldap: no user can log in without auth_ldap_options");
		break;
	case AUTH_TYPE_TRUST:
	case AUTH_TYPE_PLAIN:
	case AUTH_TYPE_MD5:
	case AUTH_TYPE_SCRAM_SHA_256:
	case AUTH_TYPE_CERT:
		check_secrets(survey);
		break;
	case AUTH_TYPE_HBA:
	case AUTH_TYPE_PAM:
		break;
	}
}

static bool is_served(const struct survey *survey, const char *database)
{
	return snapshot_template(survey->config) ||
		snapshot_find_database(survey->config, database);
}

/* Check auth_query and auth_dbname of the settings, or of the database that `prefix` names. */
static void check_auth_query(
	const struct survey *survey, const char *prefix, const char *query, const char *place)
{
	if (query && !strstr(query, "$1"))
		report(survey, PROBLEM_WARNING,
			"%sauth_query: no user can be found by a query without the parameter $1",
			prefix);
	if (is_set(place) && !is_served(survey, place))
		report(survey, PROBLEM_WARNING, "%sauth_dbname: [databases] has no '%s'",
			prefix, place);
}

static void check_auth_queries(const struct survey *survey)
{
	const struct database_config *database;

	check_auth_query(
		survey, "", survey->settings->auth_query, survey->settings->auth_dbname);
	for (size_t i = 0; (database = snapshot_database(survey->config, i)) != NULL; i++) {
		char prefix[DATABASE_NAME_LIMIT + 3];

		snprintf(prefix, sizeof(prefix), "%s: ", database->name);
		check_auth_query(survey, prefix, database->auth_query, database->auth_dbname);
	}
}

void surroundings_check(
	const struct options *options, const struct snapshot *config, struct problems *problems)
{
	static void (*const checks[])(const struct survey *survey) = {
		check_tls,
		check_libraries,
		check_affinity,
		check_user,
		check_socket_directory,
		check_socket_rights,
		check_files,
		check_addresses,
		check_syslog,
		check_auth_type,
		check_auth_queries,
	};
	const struct survey survey = {
		.options = options,
		.config = config,
		.settings = snapshot_settings(config),
		.problems = problems,
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](&survey);
}
