/* SPDX-License-Identifier: ISC */
/*
 * What the bodies of net/listener have for one another, and nobody else: accepting knows no kind of
 * socket; TCP, Unix and passed sockets each know how one is made; net/listener.c has the set.
 */
#ifndef PGUSHER_NET_LISTENER_PARTS_H
#define PGUSHER_NET_LISTENER_PARTS_H

#include "net/listener.h"

/* --- src/net/listener_accept.c ------------------------------------------------------------ */

/* Takes over the descriptor once it is started; NULL: no memory. Before that, free() is enough. */
struct listener *listener_new(struct listeners *set, int fd);

/* Put a finished listener into the set and let it accept. */
void listener_start(struct listener *listener);

/* Take one that was started out of its set, and close it. */
void listener_free(struct listener *listener);

/* The descriptor that is kept for a rest. False: there is none to be had. */
bool listeners_take_spare(struct listeners *set);
void listeners_give_spare(struct listeners *set);

/* The end of a rest, in case no descriptor was freed before: expire of `retry`. */
void listeners_on_rested(struct deadline *retry);

/* --- src/net/listener_tcp.c --------------------------------------------------------------- */

/* All of listen_addr. False: `why` says what is fatal; some may have been started. */
bool listeners_open_tcp(
	struct listeners *set, const struct listen_options *options, char *why, size_t size);

/* A socket that listens already gets its address and our options. False: not all of them. */
bool listener_dress_tcp(struct listener *listener, const struct listen_options *options);

/* --- src/net/listener_unix.c -------------------------------------------------------------- */

/* The socket of unix_dir, if there is to be one. False: `why` says what is fatal. */
bool listeners_open_unix(
	struct listeners *set, const struct listen_options *options, char *why, size_t size);

/* The path of a bound Unix socket; its port is the one that we would have. */
void listener_name_unix(struct listener *listener, const struct listen_options *options);

/* Remove its file, if it has one that is still its own. */
void listener_unlink(const struct listener *listener);

/* --- src/net/listener_passed.c ------------------------------------------------------------ */

/* All sockets that were passed. False: `why` says which one is none of ours to take. */
bool listeners_take_passed(
	struct listeners *set, const struct listen_options *options, char *why, size_t size);

#endif
