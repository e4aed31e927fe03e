/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_tokens.h"

#include "support/fakes/fake_pool.h"
#include "support/simulation/sim_random.h"
#include "wire/message.h"
#include "wire/reader.h"

uint64_t sim_random_state;

static struct sim_token tokens[1 << 16];
static unsigned count;

void sim_tokens_clear(void)
{
	count = 1; /* 0 means no token */
}

unsigned sim_tokens_new(unsigned owner)
{
	assert_true(count < COUNT(tokens));
	tokens[count] = (struct sim_token){.owner = owner};
	return count++;
}

struct sim_token *sim_token(unsigned token)
{
	if (token == 0 || token >= count)
		fail_msg("token %u is unknown", token);
	return &tokens[token];
}

static void skip_token(unsigned token)
{
	struct sim_token *entry = sim_token(token);

	if (entry->executed > 0)
		fail_msg("t%u was run, but its client was sent an error instead", token);
	entry->skipped = true;
}

static bool is_digit(uint8_t letter)
{
	return letter >= '0' && letter <= '9';
}

/* Skips the tokens in a text or after a length. */
static void skip_texts(const uint8_t *body, size_t length)
{
	for (size_t i = 0; i + 1 < length; i++)
		if (body[i] == 't' && (i == 0 || body[i - 1] <= ' ' || body[i - 1] == '\'') &&
			is_digit(body[i + 1]))
			skip_token((unsigned)strtoul((const char *)body + i + 1, NULL, 10));
}

void sim_tokens_skip(char letter, const uint8_t *body, size_t length)
{
	struct reader reader;

	if (letter == PQ_FUNCTION_CALL) {
		reader_init(&reader, body, length);
		reader_int32(&reader);
		skip_token(reader_int32(&reader));
	} else if (letter == PQ_QUERY || letter == PQ_BIND) {
		skip_texts(body, length);
	}
}
