/* SPDX-License-Identifier: ISC */
#include "top/live.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "top/screen.h"
#include "top/verdict.h"

/* Ages on the screen grow even if the console is silent. */
static const usec_t tick = USEC_PER_SEC;

enum { STATUS_OF_SIGNAL = 128, STATUS_NOT_CONNECTED = 2 };

struct live {
	struct session *session;
	struct ui ui;
	struct page page;
	bool ended, redraw;
	int status;
	usec_t drawn;
};

/* --- signals ------------------------------------------------------------------------------ */

static int signal_pipe[2];

static void on_signal(int number)
{
	const int error = errno;
	const unsigned char byte = (unsigned char)number;

	/* If the pipe is full, there are signals enough in it. */
	if (write(signal_pipe[1], &byte, 1) < 0)
		errno = error;
	errno = error;
}

static bool catch_signals(void)
{
	static const int caught[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGWINCH, SIGCONT};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	if (pipe2(signal_pipe, O_NONBLOCK | O_CLOEXEC) != 0)
		return false;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaction(caught[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	return true;
}

static void take_signals(struct live *live)
{
	unsigned char byte;

	while (read(signal_pipe[0], &byte, 1) == 1) {
		if (byte == SIGWINCH || byte == SIGCONT) {
			screen_resize();
			live->redraw = true;
		} else {
			live->ended = true;
			live->status = byte == SIGINT ? EXIT_SUCCESS : STATUS_OF_SIGNAL + byte;
		}
	}
}

/* --- keys --------------------------------------------------------------------------------- */

static void refresh_now(struct live *live, usec_t now)
{
	for (enum topic topic = 0; topic < TOPICS; topic++)
		if (!live->session->feed.answers[topic].refusal[0])
			live->session->feed.answers[topic].asked = 0;
	console_link_retry(&live->session->link, now);
}

static void take_keys(struct live *live, usec_t now)
{
	int key;

	while (!live->ended && (key = screen_key()) >= 0) {
		switch (ui_press(&live->ui, key)) {
		case UI_QUIT:
			live->ended = true;
			break;
		case UI_REFRESH:
			refresh_now(live, now);
			live->redraw = true;
			break;
		case UI_REPAINT:
			screen_resize();
			live->redraw = true;
			break;
		case UI_REDRAW:
			live->redraw = true;
			break;
		case UI_NOTHING:
			break;
		}
	}
	live->session->feed.interval = live->ui.interval;
}

/* --- the screen --------------------------------------------------------------------------- */

static bool open_screen(const struct live *live)
{
	const char *no_color = getenv("NO_COLOR");

	return screen_open(!live->session->options->no_colour && !(no_color && no_color[0]));
}

static void draw(struct live *live, usec_t now)
{
	const struct compose_source source = session_source(live->session, now);
	size_t width, height;

	screen_size(&width, &height);
	compose_screen(&live->page, &live->ui, &source, width, height);
	screen_draw(&live->page);
	live->redraw = false;
	live->drawn = now;
}

/* The screen makes room for the question. */
static void ask_password(struct live *live, usec_t now)
{
	const bool may_go_on = live->session->met;

	screen_close();
	if (!session_prompt(live->session, now) && !may_go_on) {
		session_complain(live->session);
		live->ended = true;
		live->status = STATUS_NOT_CONNECTED;
		return;
	}
	if (!open_screen(live)) {
		live->ended = true;
		live->status = EXIT_FAILURE;
	}
	live->redraw = true;
}

/* A password that was typed and is wrong is not tried again and again. */
static void check_password(struct live *live)
{
	const struct session *session = live->session;

	if (!session->prompted || session->met || session->link.attempts == 0)
		return;
	screen_close();
	session_complain(session);
	live->ended = true;
	live->status = STATUS_NOT_CONNECTED;
}

/* --- the loop ----------------------------------------------------------------------------- */

static unsigned wanted_topics(const struct live *live)
{
	if (live->ui.paused)
		return 0;
	return VIEW_COMMON_TOPICS | views[live->ui.view]->topics |
		verdict_topics(&live->session->feed);
}

static int milliseconds_until(usec_t deadline, usec_t now)
{
	if (deadline <= now)
		return 0;
	return (int)((deadline - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
}

/* Sleep until something happens; returns whether the console's socket is ready. */
static bool sleep_until(struct live *live, usec_t deadline, usec_t now)
{
	struct pollfd polled[3] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = signal_pipe[0], .events = POLLIN},
	};

	if (deadline > live->drawn + tick)
		deadline = live->drawn + tick;
	polled[2].fd = console_link_socket(&live->session->link, &polled[2].events);
	if (poll(polled, 3, milliseconds_until(deadline, now)) < 0)
		return false;
	if (polled[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		live->ended = true; /* the terminal is gone */
	return polled[2].revents != 0;
}

/* Returns when the next turn is due. */
static usec_t turn(struct live *live, bool ready, usec_t now)
{
	usec_t deadline;

	switch (session_turn(live->session, wanted_topics(live), ready, now, &deadline)) {
	case SESSION_NEEDS_PASSWORD:
		ask_password(live, now);
		deadline = now;
		break;
	case SESSION_CHANGED:
		live->redraw = true;
		break;
	case SESSION_NOTHING:
		break;
	}
	check_password(live);
	return deadline;
}

/* Returns whether the console's socket is ready for the next step. */
static bool step(struct live *live, bool ready)
{
	const usec_t now = clock_monotonic(), deadline = turn(live, ready, now);

	if (live->ended)
		return false;
	if (live->redraw || now >= live->drawn + tick)
		draw(live, now);
	ready = sleep_until(live, deadline, now);
	take_signals(live);
	take_keys(live, clock_monotonic());
	return ready;
}

int live_run(struct session *session)
{
	struct live live = {.session = session};
	bool ready = false;

	if (!catch_signals() || !open_screen(&live)) {
		fprintf(stderr, "%s: cannot open the terminal\n", session->options->program);
		return EXIT_FAILURE;
	}
	ui_begin(&live.ui, session->options->interval);
	while (!live.ended)
		ready = step(&live, ready);
	screen_close();
	page_free(&live.page);
	return live.status;
}
