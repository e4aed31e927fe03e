/* SPDX-License-Identifier: ISC */
#include "session/link/tls_setup.h"

#include <stdio.h>

#include "base/log.h"
#include "net/tls_context.h"

enum { WHY_SIZE = 512 };

/* --- from settings to options ------------------------------------------------------------- */

/*
 * With a CA file, clients are asked for a certificate even if none is required, since HBA rules
 * may require one. Without a CA file no certificate could be verified, and none is requested.
 */
static enum tls_trust trust_in_clients(const struct settings *settings)
{
	if (settings->client_tls_sslmode >= TLS_MODE_VERIFY_CA)
		return TLS_TRUST_CHAIN;
	return settings->client_tls_ca_file[0] != '\0' ? TLS_TRUST_OFFERED : TLS_TRUST_ANY;
}

static struct tls_options towards_clients(const struct settings *settings)
{
	return (struct tls_options){
		.side = TLS_TOWARDS_CLIENTS,
		.trust = trust_in_clients(settings),
		.protocols = settings->client_tls_protocols,
		.ciphers = settings->client_tls_ciphers,
		.tls13_ciphers = settings->client_tls13_ciphers,
		.curve = settings->client_tls_ecdhcurve,
		.dheparams = settings->client_tls_dheparams,
		.ca_file = settings->client_tls_ca_file,
		.crl_file = settings->client_tls_crl_file,
		.cert_file = settings->client_tls_cert_file,
		.key_file = settings->client_tls_key_file,
	};
}

/* No certificate is asked of browsers and scrapers, even if clients of PostgreSQL need one. */
static struct tls_options towards_browsers(const struct settings *settings)
{
	struct tls_options options = towards_clients(settings);

	options.trust = TLS_TRUST_ANY;
	options.ca_file = options.crl_file = "";
	options.http = true;
	return options;
}

static enum tls_trust trust_in_servers(enum tls_mode mode)
{
	if (mode == TLS_MODE_VERIFY_FULL)
		return TLS_TRUST_NAME;
	return mode == TLS_MODE_VERIFY_CA ? TLS_TRUST_CHAIN : TLS_TRUST_ANY;
}

static struct tls_options towards_servers(const struct settings *settings)
{
	return (struct tls_options){
		.side = TLS_TOWARDS_SERVERS,
		.trust = trust_in_servers(settings->server_tls_sslmode),
		.protocols = settings->server_tls_protocols,
		.ciphers = settings->server_tls_ciphers,
		.tls13_ciphers = settings->server_tls13_ciphers,
		.ca_file = settings->server_tls_ca_file,
		.crl_file = settings->server_tls_crl_file,
		.cert_file = settings->server_tls_cert_file,
		.key_file = settings->server_tls_key_file,
	};
}

/* Returns false, with the error in `why`, if settings contradict each other. */
static bool check_consistent(const struct settings *settings, char *why, size_t size)
{
	const bool no_ca_file = settings->client_tls_ca_file[0] == '\0';
	const char *wrong = NULL;

	if (settings->auth_type == AUTH_TYPE_CERT &&
		settings->client_tls_sslmode != TLS_MODE_VERIFY_FULL)
		wrong = "auth_type=cert requires client_tls_sslmode=SSLMODE_VERIFY_FULL";
	else if (settings->auth_type == AUTH_TYPE_CERT && no_ca_file)
		wrong = "auth_type=cert requires client_tls_ca_file";
	else if (settings->client_tls_sslmode == TLS_MODE_VERIFY_FULL && no_ca_file)
		wrong = "client_tls_sslmode requires client_tls_ca_file";
	if (wrong)
		snprintf(why, size, "%s", wrong);
	return !wrong;
}

/* --- making contexts ---------------------------------------------------------------------- */

/* Returns false, with the error in `why`, on failure. *out is NULL if TLS is disabled. */
static bool make_client(
	const struct settings *settings, struct tls_context **out, char *why, size_t size)
{
	const struct tls_options options = towards_clients(settings);

	*out = NULL;
	if (!check_consistent(settings, why, size))
		return false;
	if (settings->client_tls_sslmode == TLS_MODE_DISABLE)
		return true;
	*out = tls_context_new(&options, why, size);
	return *out;
}

static bool make_server(
	const struct settings *settings, struct tls_context **out, char *why, size_t size)
{
	const struct tls_options options = towards_servers(settings);

	*out = NULL;
	if (settings->server_tls_sslmode == TLS_MODE_DISABLE)
		return true;
	*out = tls_context_new(&options, why, size);
	return *out;
}

/* The same if metrics_tls is off. */
static bool make_metrics(
	const struct settings *settings, struct tls_context **out, char *why, size_t size)
{
	const struct tls_options options = towards_browsers(settings);

	*out = NULL;
	if (!settings->metrics_tls)
		return true;
	if (settings->client_tls_cert_file[0] == '\0' ||
		settings->client_tls_key_file[0] == '\0') {
		snprintf(why, size,
			"metrics_tls requires client_tls_key_file and client_tls_cert_file");
		return false;
	}
	*out = tls_context_new(&options, why, size);
	return *out;
}

/* Check protocol versions and ciphers for servers, without the files. */
static bool check_server_algorithms(const struct settings *settings, char *why, size_t size)
{
	struct tls_options options = towards_servers(settings);
	struct tls_context *context;

	if (settings->server_tls_sslmode == TLS_MODE_DISABLE)
		return true;
	options.trust = TLS_TRUST_ANY;
	options.ca_file = options.crl_file = options.cert_file = options.key_file = NULL;
	context = tls_context_new(&options, why, size);
	tls_context_unref(context);
	return context;
}

bool tls_setup_check(const struct settings *settings, char *why, size_t size)
{
	struct tls_context *client = NULL, *metrics = NULL;
	const bool good = make_client(settings, &client, why, size) &&
		make_metrics(settings, &metrics, why, size) &&
		check_server_algorithms(settings, why, size);

	tls_context_unref(client);
	tls_context_unref(metrics);
	return good;
}

bool tls_setup_check_servers(const struct settings *settings, char *why, size_t size)
{
	struct tls_context *server;
	const bool good = make_server(settings, &server, why, size);

	tls_context_unref(server);
	return good;
}

static void note_files(const struct tls_options *options, struct file_list *files)
{
	const char *const paths[] = {
		options->ca_file, options->crl_file, options->cert_file, options->key_file};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (paths[i][0] != '\0')
			file_list_note(files, paths[i]);
	}
}

void tls_setup_note_files(const struct settings *settings, struct file_list *files)
{
	const struct tls_options clients = towards_clients(settings);
	const struct tls_options servers = towards_servers(settings);
	const struct tls_options browsers = towards_browsers(settings);

	if (settings->client_tls_sslmode != TLS_MODE_DISABLE)
		note_files(&clients, files);
	else if (settings->metrics_tls)
		note_files(&browsers, files);
	if (settings->server_tls_sslmode != TLS_MODE_DISABLE)
		note_files(&servers, files);
}

struct contexts {
	struct tls_context *client, *server, *metrics;
};

static void drop_contexts(const struct contexts *contexts)
{
	tls_context_unref(contexts->client);
	tls_context_unref(contexts->server);
	tls_context_unref(contexts->metrics);
}

static void replace_contexts(struct process *process, const struct contexts *contexts)
{
	drop_contexts(&(struct contexts){
		process->client_tls, process->server_tls, process->metrics_tls});
	process->client_tls = contexts->client;
	process->server_tls = contexts->server;
	process->metrics_tls = contexts->metrics;
}

bool tls_setup_apply(struct registry *registry)
{
	const struct settings *settings = registry->process->settings;
	struct contexts contexts = {0};
	char why[WHY_SIZE];

	if (make_client(settings, &contexts.client, why, sizeof(why)) &&
		make_metrics(settings, &contexts.metrics, why, sizeof(why)) &&
		make_server(settings, &contexts.server, why, sizeof(why))) {
		replace_contexts(registry->process, &contexts);
		return true;
	}
	drop_contexts(&contexts);
	log_write(LEVEL_ERROR, "%s", why);
	return false;
}

bool tls_setup_start(struct registry *registry)
{
	const struct settings *settings = registry->process->settings;
	struct contexts contexts = {0};
	char why[WHY_SIZE];

	if (!make_client(settings, &contexts.client, why, sizeof(why)) ||
		!make_metrics(settings, &contexts.metrics, why, sizeof(why)) ||
		!check_server_algorithms(settings, why, sizeof(why))) {
		drop_contexts(&contexts);
		log_write(LEVEL_ERROR, "%s", why);
		return false;
	}
	if (!make_server(settings, &contexts.server, why, sizeof(why)))
		log_write(LEVEL_ERROR, "%s", why);
	replace_contexts(registry->process, &contexts);
	return true;
}

struct tls_context *tls_setup_towards_servers(struct registry *registry)
{
	struct process *process = registry->process;
	struct tls_context *context;
	char why[WHY_SIZE];
	bool good = true;

	lock_take(&process->server_tls_lock);
	if (!process->server_tls)
		good = make_server(process->settings, &process->server_tls, why, sizeof(why));
	context = process->server_tls;
	lock_give(&process->server_tls_lock);
	if (!good)
		log_write(LEVEL_ERROR, "%s", why);
	return context;
}
