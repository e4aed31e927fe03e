/* SPDX-License-Identifier: ISC */
#include "admin/console/console_welcome.h"

#include "admin/console/reply.h"
#include "base/compat.h"
#include "model/registry.h"
#include "wire/writer.h"

void console_welcome_write(const struct client_link *client, struct buffer *out)
{
	const struct registry *registry = link_registry(&client->link);
	const char *notice = registry->process->settings->login_notify_message;

	writer_authentication(out, AUTH_OK, NULL, 0);
	writer_parameter_status(out, "server_version", COMPAT_VERSION "/bouncer");
	writer_parameter_status(out, "client_encoding", "UTF8");
	writer_parameter_status(out, "server_encoding", "UTF8");
	writer_parameter_status(out, "DateStyle", "ISO");
	writer_parameter_status(out, "TimeZone", "GMT");
	writer_parameter_status(out, "standard_conforming_strings", "on");
	writer_parameter_status(out, "is_superuser", "on");
	if (client->link.parameters)
		parameters_report(client->link.parameters, out);
	writer_backend_key(out, client->key, client->key_length);
	if (notice && notice[0] != '\0')
		reply_notice(out, notice, NULL);
	writer_ready(out, READY_IDLE);
}
