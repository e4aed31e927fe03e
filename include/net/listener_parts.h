/* SPDX-License-Identifier: ISC */
/*
 * Functions that the files of net/listener share; private to them. listener_accept.c accepts
 * from any kind of socket; listener_tcp.c, listener_unix.c and listener_passed.c make
 * listeners; listener_kept.c finds sockets that an earlier process has left; listener.c opens
 * and closes the set.
 */
#ifndef PGUSHER_NET_LISTENER_PARTS_H
#define PGUSHER_NET_LISTENER_PARTS_H

#include "net/listener.h"

/* --- src/net/listener_accept.c ------------------------------------------------------------ */

/*
 * Make a listener. Returns NULL when out of memory. Until listener_start() the caller owns the
 * descriptor, and undoes this with free().
 */
struct listener *listener_new(struct listeners *set, int fd);

/* Add a complete listener to its set, which then owns it and its descriptor, and accept. */
void listener_start(struct listener *listener);

/* Remove a listener that was started from its set, close its descriptor and free it. */
void listener_free(struct listener *listener);

/* Open the spare descriptor; returns false when that fails. And close it. */
bool listeners_take_spare(struct listeners *set);
void listeners_give_spare(struct listeners *set);

/* A rest has lasted its full time: the `expire` of listeners.retry. */
void listeners_on_rested(struct deadline *retry);

/* --- src/net/listener_tcp.c --------------------------------------------------------------- */

/*
 * Open listen_addr. Returns false with the fatal message in `why`; some may have been started.
 */
bool listeners_open_tcp(
	struct listeners *set, const struct listen_options *options, char *why, size_t size);

/*
 * Read the address of a passed socket and set our TCP options on it. Returns false when
 * TCP_DEFER_ACCEPT cannot be set.
 */
bool listener_prepare_passed_tcp(
	struct listener *listener, const struct listen_options *options);

/* --- src/net/listener_unix.c -------------------------------------------------------------- */

/* Open the socket in unix_dir, if one is set. Returns false with the fatal message in `why`. */
bool listeners_open_unix(
	struct listeners *set, const struct listen_options *options, char *why, size_t size);

/* Read the path of a passed Unix socket. Its port is that of the options. */
void listener_name_unix(struct listener *listener, const struct listen_options *options);

/* Remove the socket's file, unless another process has replaced it or a manager owns it. */
void listener_unlink(const struct listener *listener);

/* --- src/net/listener_passed.c ------------------------------------------------------------ */

/* Start all passed sockets. Returns false and names the one that cannot be used in `why`. */
bool listeners_take_passed(
	struct listeners *set, const struct listen_options *options, char *why, size_t size);

/* --- src/net/listener_kept.c -------------------------------------------------------------- */

/*
 * Returns the kept socket that listens on this address, which the caller owns from now on, and
 * -1 if there is none. It is non-blocking and close-on-exec.
 */
int listener_take_kept_tcp(const struct listen_options *options, const struct sockaddr *at);

/*
 * End the kept sockets that keep one from listening on this address, which has been tried: since an
 * address for all stands against one of them, they cannot be used as well. Returns whether there
 * were any.
 */
bool listener_end_kept_in_the_way(
	const struct listen_options *options, const struct sockaddr *at, socklen_t length);

/*
 * The same as listener_take_kept_tcp() for the Unix socket of this path. There must be a file at the path that leads to that
 * very socket: clients do not reach one without a file, or whose file another process replaced.
 */
int listener_take_kept_unix(const struct listen_options *options, const char *path);

/* Does a connection made to this path end at one of the kept sockets? */
bool listener_is_kept(int connected, const char *path, const int *kept, unsigned kept_count);

#endif
