/* SPDX-License-Identifier: ISC */
/*
 * Listening sockets, and accepting connections from them.
 *
 * The daemon owns one set of listeners, and the set owns the listeners. TCP options are set on
 * the listening socket and inherited by accepted connections (tcp(7)), so that a login needs no
 * system call for them. A callback gets each accepted descriptor.
 *
 * When descriptors run out, no connection is accepted only to be closed: the set rests for some
 * seconds, and connections wait in the kernel's queue. The set keeps one spare descriptor, and
 * closes it while it rests, so that the rest of the process can open one. A set whose owner has
 * no room for one more connection rests for some milliseconds; if the owner has room and the
 * kernel has not, the spare one is used for the connection.
 */
#ifndef PGUSHER_NET_LISTENER_H
#define PGUSHER_NET_LISTENER_H

#include <bsd/sys/queue.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "net/address.h"
#include "net/loop.h"
#include "net/tcp_options.h"

enum {
	/* Size of a buffer for the longest text of a listener: `unix:` and a path. */
	LISTENER_TEXT_SIZE = 160,
};

/*
 * A connection was accepted. The callback takes over the descriptor, which is non-blocking and
 * close-on-exec. `from` is the peer's address; it is meaningless for a Unix socket. The
 * callback may call listeners_pause(), but must not close listeners.
 */
typedef void listener_function(
	void *context, int fd, const struct sockaddr *from, socklen_t length, bool is_unix);

/* Returns whether one more connection may be accepted; must not close listeners. */
typedef bool listener_room_function(void *context);

/* A socket that listens already. */
struct listen_socket {
	int fd;
	/* A service manager holds it too, and keeps the file of a Unix socket. */
	bool is_managers;
};

/* listeners_open() keeps no reference to these options, nor to their texts. */
struct listen_options {
	const char
		*addresses; /* comma list of addresses and names, `*` for all; empty: no TCP */
	int port;
	int backlog;
	bool reuseport;
	bool defer_accept; /* TCP_DEFER_ACCEPT: accept after the first bytes, or a second */
	struct tcp_options tcp;
	const char
		*unix_dir; /* a leading @ is the abstract name space; empty: no Unix socket */
	unsigned unix_mode;
	const char *unix_group; /* name or number; empty: do not change the group */
	/* Sockets that listen already, to be used instead; owned by the set after success. */
	const struct listen_socket *passed;
	unsigned passed_count;
	bool inherited; /* those come from the old process of a takeover */
	/*
	 * Sockets of an earlier process, which the service manager has kept since that process
	 * died: each is used where the options name its address, and then owned by the set; its
	 * entry becomes -1. The caller closes the others.
	 */
	int *kept;
	unsigned kept_count;
};

struct listeners;

struct listener {
	TAILQ_ENTRY(listener) entry;
	struct listeners *set;
	struct event event;
	struct loop_task arrivals; /* accepts connections in this turn */
	int fd;
	bool is_unix;
	bool is_passed; /* by a service manager: do not remove its file */
	struct address address; /* a Unix socket has the port of its file name */
	char path
		[108]; /* of a Unix socket, a leading @ is the abstract name space; else empty */
	dev_t device; /* of the socket's file: a file that replaced it is not removed */
	ino_t inode;
	uint64_t last_turn; /* the loop's turn in which it was last readable */
	unsigned eager; /* for so many more events: accept all that wait, not one */
};

TAILQ_HEAD(listener_list, listener);

struct listeners {
	struct listener_list list; /* TCP in the order of listen_addr, then Unix */
	struct loop *loop;
	listener_function *accepted;
	listener_room_function *has_room; /* the owner may set it; NULL: always */
	void *context; /* of both */
	struct deadline retry; /* end of a rest */
	usec_t complained; /* when a rest was last logged; 0: never */
	uint64_t rests_for_descriptors, rests_for_memory; /* since the process started */
	int spare; /* the spare descriptor; -1 while it is closed */
	bool paused; /* listeners_pause() was called */
	bool resting; /* no room, or accept() failed for want of descriptors or memory */
};

/*
 * Open all sockets that the options ask for and start to accept. An address that fails is
 * logged as a warning. Returns false when no TCP address works, a name cannot be resolved, the
 * Unix socket fails, or there is no address at all: `why` then has the fatal message, and no
 * socket is open. Names are resolved with getaddrinfo(), which blocks: call it at the start
 * only.
 */
bool listeners_open(struct listeners *set, struct loop *loop,
	const struct listen_options *options, listener_function *accepted, void *context,
	char *why, size_t size);

/*
 * Returns the address family of a descriptor that is a listening stream socket, and AF_UNSPEC
 * for any other.
 */
int listener_family(int fd);

/* Close and free the TCP listeners; the kernel resets the connections in their queues. */
void listeners_close_tcp(struct listeners *set);

/*
 * Close and free the TCP listeners that a service manager has passed: it holds them too, so new
 * connections wait for the next process.
 */
void listeners_close_passed(struct listeners *set);

/*
 * Close and free all listeners. If `unlink_file`, also remove the file of a Unix socket, unless
 * it belongs to a service manager or another process has replaced it.
 */
void listeners_close_all(struct listeners *set, bool unlink_file);

/* Stop accepting until listeners_resume(): connections wait in the kernel's queue. */
void listeners_pause(struct listeners *set);
void listeners_resume(struct listeners *set);

/* Open the spare descriptor again, if it is closed; end the rest if that works. */
void listeners_try_again(struct listeners *set);

/* To be called after a descriptor was closed: ends a rest. */
static inline void listeners_descriptor_freed(struct listeners *set)
{
	if (set->resting || set->spare < 0)
		listeners_try_again(set);
}

/*
 * Change the options of open TCP listeners; connections accepted from now on have them.
 * Failures are logged as warnings.
 */
void listeners_set_defer_accept(struct listeners *set, bool defer);
void listeners_set_tcp_options(struct listeners *set, const struct tcp_options *options);

/* Walk the set: pass NULL for the first one; returns NULL after the last one. */
const struct listener *listeners_next(
	const struct listeners *set, const struct listener *after);

/* Writes `127.0.0.1:6432`, `[::1]:6432` or `unix:/tmp/.s.PGSQL.6432`. Returns `out`. */
const char *listener_text(const struct listener *listener, char out[LISTENER_TEXT_SIZE]);

/*
 * Returns whether a process listens on the Unix socket of this directory and port; false for an
 * empty directory, and if the socket there is one of the `kept` ones (-1: none). Call it before
 * listeners_open(), which removes a socket file that exists.
 */
bool listener_unix_is_in_use(
	const char *unix_dir, int port, const int *kept, unsigned kept_count);

#endif
