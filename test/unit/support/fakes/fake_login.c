/* SPDX-License-Identifier: ISC */
#include "support/fakes/fake_login.h"

#include "wire/reader.h"
#include "wire/startup.h"
#include "wire/writer.h"

void send_login(struct endpoint *client, const char *user, const char *database)
{
	if (registry_find_database(&fake_registry, database))
		fake_pool(database, user);
	send_startup(client, PROTOCOL_3_0, "user", user, "database", database, NULL);
}

struct endpoint *startup(const char *user, const char *database)
{
	struct endpoint *client = fake_accept(-1);

	send_login(client, user, database);
	return client;
}

void send_password(struct endpoint *client, const char *password)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_password(&buffer, password, strlen(password) + 1);
	send_buffer(client, &buffer);
}

const uint8_t *received_request(
	struct endpoint *client, enum authentication_request request, size_t *length)
{
	struct reader reader;
	const uint8_t *body;
	size_t total;

	assert_received(client, "R");
	body = received_body(client, &total);
	reader_init(&reader, body, total);
	assert_int_equal(reader_int32(&reader), request);
	if (length)
		*length = total - 4;
	return body + 4;
}
