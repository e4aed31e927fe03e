/* SPDX-License-Identifier: ISC */
/*
 * The state of the whole process, which all event loops share: the current configuration,
 * limits, cancel keys, TLS contexts, listeners, peers, PAUSE, SUSPEND and SHUTDOWN, ids.
 *
 * The state of one event loop is in model/registry.
 *
 * Fields are of three kinds. Those with a lock, a SHARED_ macro or an atomic type: any worker uses
 * them. `config`, `settings`, the TLS contexts, the networks of `sources`, `operation`, `draining`,
 * `still`, `shutdown`, `drain`, `suspension`, and what is set at the start: any worker reads them,
 * the first one changes them while the others are stopped. All the rest (`dealt`, `peers`,
 * `found_peers`, `discovery`, `console_waits`, `show_streams`, `sized_at`, `listeners`, ...): the
 * first worker only.
 */
#ifndef PGUSHER_MODEL_PROCESS_H
#define PGUSHER_MODEL_PROCESS_H

#include <sys/types.h>

#include "base/handles.h"
#include "base/lock.h"
#include "base/random.h"
#include "config/snapshot.h"
#include "model/cancel_keys.h"
#include "model/descriptors.h"
#include "model/limits.h"
#include "model/shared/directory.h"
#include "model/shared/tally.h"
#include "model/sources.h"
#include "model/statistics/slow_log.h"
#include "net/crew/crew.h"
#include "net/loop.h"

struct actions;
struct client_link;
struct found_peers;
struct history;
struct listeners;
struct peer_discovery;
struct registry;
struct suspension;
struct tls_context;

TAILQ_HEAD(peer_list, peer);

TAILQ_HEAD(server_login_list, server_login);

/* Servers that log in, by the port of their own socket: see session/server/own_connection. */
enum { OWN_PORTS = 1024 };
struct own_connections {
	struct lock lock;
	uint16_t ports
		[OWN_PORTS]; /* how many have it, by the remainder: also read without the lock */
	struct server_login_list logins;
	usec_t odd_loop; /* when a client last sent the StartupMessage of one, from its address */
};

enum { WORKERS_MOST = 64 };

/* The state that PAUSE, SUSPEND and RESUME set for the process. */
enum operation { OPERATION_RUNNING, OPERATION_PAUSED, OPERATION_SUSPENDED };

enum shutdown_mode { SHUTDOWN_NONE, SHUTDOWN_WAIT_FOR_SERVERS, SHUTDOWN_WAIT_FOR_CLIENTS };

/*
 * The stages of a shutdown that waits for clients: see daemon/shutdown. After a
 * takeover the old process waits without them.
 */
enum drain_stage {
	DRAIN_NONE,
	DRAIN_DELAYED, /* drain_delay: all goes on, but the process is not ready any more */
	DRAIN_CLOSING, /* no new logins, unless drain_accept; idle clients are closed by and by */
};

/* How the session floor calls the console, which stands above it. Set by the daemon. */
struct console_hooks {
	void (*begin)(struct client_link *client); /* the client has entered CLIENT_CONSOLE */
	/* There are bytes to receive, or the backlog is empty again. */
	void (*readable)(struct client_link *client);
	void (*canceled)(struct client_link *client); /* a CancelRequest arrived with its key */
	void (*closed)(
		struct client_link *client); /* it is being closed: free client->console */
};

/* How a suspension calls the floors above. Set by the daemon. */
struct suspend_hooks {
	void (*accept)(struct registry *registry, bool accept); /* new connections, or not */
	void (*changed)(struct registry *registry); /* all links are at rest, or it is over */
};

/* Commands that a console waits for: see admin/console/waits. */
LIST_HEAD(console_wait_list, console_wait);

struct process {
	/* One for each event loop, by the number of its worker: owned by the daemon. */
	struct registry *registries[WORKERS_MOST];
	unsigned workers; /* registries that were initialised */
	struct crew crew; /* of their loops */
	unsigned dealt; /* accepted connections that were dealt out to them */
	unsigned workers_wanted; /* that there will be; 0: one */
	struct snapshot *config; /* a reference */
	const struct settings *settings; /* of config */
	struct loop_clock clock; /* of all loops */
	struct directory directory; /* all databases and pools */
	struct tallies tallies; /* servers and clients that all workers count together */
	struct limits limits;
	struct sources sources; /* counts by client address */
	struct history *history; /* owned; NULL: none: see model/statistics/history */
	struct cancel_keys cancel_keys;
	/* References; NULL: none (tls_setup). That of metrics is for the HTTP endpoint. */
	struct tls_context *client_tls, *server_tls, *metrics_tls;
	struct lock server_tls_lock; /* any worker may have to make server_tls */
	const struct listeners *listeners; /* owned by the daemon; NULL: none */
	usec_t sized_at; /* the last round of session/pool/auto_size; 0: none */
	/* There may be pools with pool_size = auto: see session/pool/auto_size. Set by any worker. */
	bool sizes_pools;
	struct peer_list peers; /* sorted by id, those used so far: see model/peer */
	const struct found_peers *found_peers; /* besides those of [peers]; NULL: none */
	struct peer_discovery *discovery; /* finds them: session/pool/peer_discovery; or NULL */
	enum operation operation;
	bool draining; /* for a takeover: clients with a server continue, the others stop */
	bool still; /* for a takeover: no link may change any more (daemon/takeover/handover) */
	struct suspension *suspension; /* SUSPENDED: see session/serving/suspend */
	struct suspend_hooks suspend;
	enum shutdown_mode shutdown;
	enum drain_stage drain;
	usec_t operation_at, shutdown_at; /* when these two last changed */
	unsigned operation_servers; /* how many servers there were at the PAUSE */
	unsigned shutdown_clients; /* how many clients, without consoles, at the SHUTDOWN */
	pid_t old_process; /* it was taken over from that one; 0: none, or not known */
	unsigned old_clients; /* that it had, logged in; 0: none, or not known */
	usec_t watchdog; /* time of the service manager's watchdog (daemon/systemd); 0: none */
	uint64_t last_id; /* of links, for SHOW */
	uint64_t last_statement_id; /* see model/statement */
	uint64_t last_host; /* see model/host/hosts */
	struct slow_shared slow; /* see model/statistics/slow_log */
	struct own_connections own_connections; /* servers that log in */
	struct handles handles; /* of the objects that a SHOW names */
	struct descriptors descriptors;
	uint8_t mock_salt[32]; /* for SCRAM exchanges with unknown users */
	bool has_scram_secrets; /* a user has one: a password may take long to check; stays true */
	struct console_hooks console;
	struct console_wait_list console_waits;
	unsigned
		show_streams; /* answers of SHOW and of the page that use handles: see admin/show/show_stream */
	struct actions *actions; /* what only the daemon can do: see admin/console/commands */
	const char *version; /* `PgBouncer 1.26.1 (pgusher X.Y.Z)`; see compat_version */
};

/*
 * Walk the registries of all workers. Other registries than its own are used by the first worker
 * only, while the others are stopped.
 */
#define EACH_REGISTRY(each, process)                                                           \
	for (unsigned each##_number = 0; each##_number < (process)->workers &&                 \
		((each) = (process)->registries[each##_number], true);                         \
		each##_number++)

/*
 * To be called by the first worker only: stop all others between two of their turns, so that it may
 * use all registries, and deliver all mail. The deliveries may close any client or server, so the
 * caller must not be in the middle of a change. Ends with process_let_others_run(); calls nest, and
 * only the outermost delivers. With one worker both do nothing. See net/crew.
 */
static inline void process_stop_others(struct process *process)
{
	if (process->workers > 1)
		crew_still(&process->crew);
}

static inline void process_let_others_run(struct process *process)
{
	if (process->workers > 1)
		crew_resume(&process->crew);
}

/* Returns the id of a new link. */
static inline uint64_t process_next_id(struct process *process)
{
	return SHARED_NEXT(process->last_id);
}

/* Returns our id among the peers, of the configuration or drawn; 0: there are no peers. */
static inline unsigned process_peer_id(const struct process *process)
{
	return SHARED_GET(process->cancel_keys.peer_id);
}

/* Returns whether clients may log in, as far as a shutdown is concerned. */
static inline bool process_accepts_logins(const struct process *process)
{
	return process->shutdown == SHUTDOWN_NONE || process->drain == DRAIN_DELAYED ||
		(process->drain == DRAIN_CLOSING && process->settings->drain_accept);
}

/*
 * Initialise the process with this configuration, taking over the caller's reference, and make
 * a random salt. The caller has zeroed the struct; hooks, actions and version stay as it has
 * set them.
 */
void process_init(struct process *process, struct random *random, struct snapshot *config);

/* Returns whether any client logs in. */
bool process_has_logins(const struct process *process);

/*
 * Handles are used, until they are given back as often: then all are invalid. Counted in
 * show_streams.
 */
void process_use_handles(struct process *process);
void process_give_handles_back(struct process *process);

/* Free what the process owns. All registries must have been freed before. */
void process_free(struct process *process);

#endif
