/* SPDX-License-Identifier: ISC */
/*
 * Bound sockets and accept.
 *
 * A set of listeners belongs to the daemon; each listener to its set. TCP options are set once, on
 * the listening socket, and inherited by what it accepts (tcp(7)), so that a login costs no call
 * for them. What a connection is for is not known here: the callback takes the descriptor.
 *
 * When descriptors run out nobody is accepted and dropped: the set rests, and connections wait
 * in the kernel's queue. It holds one spare descriptor which it gives up meanwhile, so that the
 * rest of the process finds one.
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
	/* Longest text of a listener: a Unix path with `unix:` before it. */
	LISTENER_TEXT_SIZE = 160,
};

/*
 * A connection was accepted. The descriptor is non-blocking, close-on-exec and now the callee's.
 * `from` is the peer's address; for a Unix socket it says nothing.
 */
typedef void listener_function(
	void *context, int fd, const struct sockaddr *from, socklen_t length, bool is_unix);

/* Everything is only read during listeners_open(). */
struct listen_options {
	const char
		*addresses; /* comma list of addresses and names, `*` for all; empty: no TCP */
	int port;
	int backlog;
	bool reuseport;
	bool defer_accept; /* hand over only when the first bytes are there, or after a second */
	struct tcp_options tcp;
	const char
		*unix_dir; /* a leading @ is the abstract name space; empty: no Unix socket */
	unsigned unix_mode;
	const char *unix_group; /* name or number; empty: leave */
	/* Sockets that listen already, from a service manager: instead of all of our own. */
	const int *passed;
	unsigned passed_count;
	bool inherited; /* from a process that we replace: they are ours, with their files */
};

struct listeners;

struct listener {
	TAILQ_ENTRY(listener) entry;
	struct listeners *set;
	struct event event;
	struct loop_task arrivals; /* connections wait to be accepted in this turn */
	int fd;
	bool is_unix;
	bool is_passed; /* its file is not ours to remove */
	struct address address; /* for a Unix socket with the port of its name */
	char path
		[108]; /* of a Unix socket, a leading @ is the abstract name space; else empty */
	dev_t device; /* of the socket's file, so that only our own is removed */
	ino_t inode;
	uint64_t last_turn; /* of the loop, in which it was readable */
	unsigned eager; /* take all who wait, so many times more */
};

TAILQ_HEAD(listener_list, listener);

struct listeners {
	struct listener_list list; /* TCP in the order of listen_addr, then Unix */
	struct loop *loop;
	listener_function *accepted;
	void *context;
	struct deadline retry; /* end of a rest */
	usec_t complained; /* when a rest was last logged; 0: never */
	uint64_t rests_for_descriptors, rests_for_memory; /* since the start */
	int spare; /* -1 while given up */
	bool paused; /* by listeners_pause() */
	bool resting; /* accept failed */
};

/*
 * Open all sockets the options ask for and start to accept. An address that fails is logged as a
 * warning. False when none of them works, a name cannot be resolved, the Unix socket fails, or
 * there is nowhere to listen on: `why` holds the fatal text and nothing is open. Names are looked
 * up with getaddrinfo, which blocks: for the start only.
 */
bool listeners_open(struct listeners *set, struct loop *loop,
	const struct listen_options *options, listener_function *accepted, void *context,
	char *why, size_t size);

/*
 * What kind of socket a descriptor is, if it is a stream socket that listens: its address family;
 * AF_UNSPEC if not.
 */
int listener_family(int fd);

/* Stop listening on TCP; what waits in the kernel's queue is reset. */
void listeners_close_tcp(struct listeners *set);

/* Close everything and free it; unlink_file says whether the Unix socket's file goes too. */
void listeners_close_all(struct listeners *set, bool unlink_file);

/* Do not accept until listeners_resume(): connections wait in the kernel's queue. */
void listeners_pause(struct listeners *set);
void listeners_resume(struct listeners *set);

/* A descriptor was closed somewhere: a rest for want of descriptors is over. */
void listeners_try_again(struct listeners *set);
static inline void listeners_descriptor_freed(struct listeners *set)
{
	if (set->resting)
		listeners_try_again(set);
}

/* Change the options of live TCP listeners; what they accept from now on has them. */
void listeners_set_defer_accept(struct listeners *set, bool defer);
void listeners_set_tcp_options(struct listeners *set, const struct tcp_options *options);

/* Walk the set: NULL starts, NULL ends. */
const struct listener *listeners_next(
	const struct listeners *set, const struct listener *after);

/* `127.0.0.1:6432`, `[::1]:6432`, `unix:/tmp/.s.PGSQL.6432`. */
const char *listener_text(const struct listener *listener, char out[LISTENER_TEXT_SIZE]);

/*
 * Is some process listening on the Unix socket of this directory and port? False also for an
 * empty directory. To be asked before listeners_open(), which unlinks what it takes for stale.
 */
bool listener_unix_is_in_use(const char *unix_dir, int port);

#endif
