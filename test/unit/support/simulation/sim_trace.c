/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_trace.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { STEPS_KEPT = 400 };

static struct {
	const char *endpoint, *action;
	unsigned number;
	long amount;
	char text[160];
} steps[STEPS_KEPT];

static uint64_t count, running_seed, digest;
static const char *running_settings;
static bool running;

void sim_trace_begin(uint64_t seed, const char *settings)
{
	count = 0;
	digest = 0;
	running_seed = seed;
	running_settings = settings;
	running = true;
}

/* FNV-1a. */
static void digest_bytes(const void *bytes, size_t length)
{
	for (const uint8_t *at = bytes; length > 0; at++, length--)
		digest = (digest ^ *at) * UINT64_C(0x100000001b3);
}

void sim_trace(const char *endpoint, unsigned number, const char *action, long amount,
	const char *text)
{
	const size_t at = count++ % STEPS_KEPT;

	steps[at].endpoint = endpoint;
	steps[at].action = action;
	steps[at].number = number;
	steps[at].amount = amount;
	text_copy(steps[at].text, sizeof(steps[at].text), text ? text : "");
	digest_bytes(endpoint, strlen(endpoint));
	digest_bytes(&number, sizeof(number));
	digest_bytes(action, strlen(action));
	digest_bytes(&amount, sizeof(amount));
	digest_bytes(steps[at].text, strlen(steps[at].text));
}

void sim_trace_message(const char *endpoint, unsigned number, const char *action,
	const uint8_t *message, size_t total)
{
	char text[sizeof(steps[0].text)];
	size_t length = 0;

	text[length++] = (char)message[0];
	for (size_t i = 5; i < total && length < sizeof(text) - 1; i++) {
		if (message[i] > ' ' && message[i] < 127)
			text[length++] = (char)message[i];
		else if (text[length - 1] != ' ')
			text[length++] = ' ';
	}
	text[length] = '\0';
	sim_trace(endpoint, number, action, (long)total, text);
}

void sim_trace_end(void)
{
	running = false;
}

bool sim_trace_print(void)
{
	if (!running)
		return false;
	running = false;
	for (uint64_t i = count > STEPS_KEPT ? count - STEPS_KEPT : 0; i < count; i++)
		fprintf(stderr, "#%llu %s %u %s %ld %s\n", (unsigned long long)i,
			steps[i % STEPS_KEPT].endpoint, steps[i % STEPS_KEPT].number,
			steps[i % STEPS_KEPT].action, steps[i % STEPS_KEPT].amount,
			steps[i % STEPS_KEPT].text);
	fprintf(stderr, "%s\nthe run had SEED=%llu\n", running_settings,
		(unsigned long long)running_seed);
	return true;
}

uint64_t sim_trace_steps(void)
{
	return count;
}

uint64_t sim_trace_digest(void)
{
	return digest;
}
