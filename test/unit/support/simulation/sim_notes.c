/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_notes.h"

#include <strings.h>

#include "support/simulation/sim_tokens.h"
#include "support/simulation/sim_world.h"

enum { NOTES = 4096, NAMES = 31, NAME = 64 };

static struct note {
	unsigned token, channel;
	bool heard[SIM_CLIENTS]; /* by the client of this slot */
	unsigned must[SIM_CLIENTS], may[SIM_CLIENTS]; /* numbers of clients; 0: none */
} notes[NOTES];
static unsigned count;
static char names[NAMES][NAME];

unsigned long long sim_notes_count;

unsigned sim_notes_bit(const char *name, size_t length)
{
	char plain[NAME] = "";
	size_t size = 0;

	for (size_t i = 0; i < length; i++)
		if (!strchr("\" ", name[i])) {
			assert_true(size < sizeof(plain) - 1);
			plain[size++] = name[i];
		}
	for (unsigned i = 0; i < NAMES; i++) {
		if (names[i][0] == '\0')
			snprintf(names[i], NAME, "%s", plain);
		if (strcmp(names[i], plain) == 0)
			return 1u << i;
	}
	fail_msg("too many channels");
	return 0;
}

const char *sim_notes_name(unsigned index)
{
	return index < NAMES && names[index][0] ? names[index] : NULL;
}

void sim_notes_clear(void)
{
	count = 0;
	memset(names, 0, sizeof(names));
	for (unsigned i = 0; i < SIM_CHANNELS; i++)
		snprintf(names[i], NAME, "n%u", i);
}

/* Clients of other databases hear nothing of it. */
static bool shares(const struct sim_client *client, const struct sim_client *notifier)
{
	return notifier && client->database == notifier->database;
}

void sim_notes_commit(unsigned token, unsigned channel)
{
	const struct sim_client *notifier = sim_world_client(sim_token(token)->owner);
	struct note *note = &notes[count++];

	assert_true(count < NOTES);
	*note = (struct note){.token = token, .channel = channel};
	for (unsigned i = 0; i < SIM_CLIENTS; i++) {
		const struct sim_client *client = sim_world_client_at(i);

		if (!client->endpoint || !client->logged_in)
			continue;
		/* Of a client that has left the database is not known. */
		if (shares(client, notifier) && (client->certain & channel))
			note->must[i] = client->number;
		if ((shares(client, notifier) || !notifier) && (client->possible & channel))
			note->may[i] = client->number;
	}
}

/* --- what clients do ---------------------------------------------------------------------- */

static void unlisten(struct sim_client *client, unsigned channels)
{
	client->certain &= ~channels;
	/* Beside other requests in flight it is not known when it ends. */
	if (client->owed > 0 || client->batch)
		client->is_vague = true;
}

void sim_notes_sent(struct sim_client *client, const char *text)
{
	const char *at;

	if (strcasestr(text, "discard all"))
		unlisten(client, UINT32_MAX);
	for (at = strcasestr(text, "listen "); at; at = strcasestr(at + 1, "listen ")) {
		const char *name = at + strlen("listen ");
		const bool ends = at - text >= 2 && strncasecmp(at - 2, "un", 2) == 0;
		const size_t length = strcspn(name, "; ");
		const unsigned channels =
			*name == '*' ? UINT32_MAX : sim_notes_bit(name, length);

		if (ends)
			unlisten(client, channels);
		else
			client->possible |= channels;
		if (ends && strchr(text, ';'))
			client->is_vague = true;
	}
}

void sim_notes_settled(struct sim_client *client)
{
	const unsigned listens = client->oracle.settings.before.channels;

	if (client->is_vague || client->was_warned) {
		client->certain = 0;
		client->possible |= listens;
		return;
	}
	client->certain = client->possible = listens;
}

void sim_notes_warned(struct sim_client *client)
{
	client->was_warned = true;
	client->certain = 0;
	for (unsigned i = 0; i < count; i++)
		for (unsigned slot = 0; slot < SIM_CLIENTS; slot++)
			if (notes[i].must[slot] == client->number)
				notes[i].must[slot] = 0;
}

/* --- what they hear ----------------------------------------------------------------------- */

void sim_notes_heard(struct sim_client *client, unsigned channel, unsigned token)
{
	const unsigned slot = sim_world_slot(client), place = channel / 2; /* 1, 2, 4 */
	unsigned i = 0;

	assert_true(place < SIM_CHANNELS);

	while (i < count && notes[i].token != token)
		i++;
	if (i == count || notes[i].channel != channel)
		fail_msg(
			"client %u hears t%u, which was not sent there", client->number, token);
	/* One of before its LISTEN, if others have listened already: see doc/differences.md. */
	if (notes[i].may[slot] != client->number && !(client->possible & channel))
		fail_msg("client %u hears t%u, and did not listen", client->number, token);
	if (notes[i].heard[slot] || i + 1 <= client->last_note[place])
		fail_msg("client %u hears t%u again, or too late", client->number, token);
	notes[i].heard[slot] = true;
	notes[i].must[slot] = 0;
	client->last_note[place] = i + 1;
	sim_notes_count++;
}

void sim_notes_check(const struct sim_client *client)
{
	const unsigned slot = sim_world_slot(client);

	for (unsigned i = 0; i < count; i++)
		if (notes[i].must[slot] == client->number)
			fail_msg("client %u has not heard t%u", client->number, notes[i].token);
}
