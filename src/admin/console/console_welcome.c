/* SPDX-License-Identifier: ISC */
#include "admin/console/console_welcome.h"

#include <stdio.h>

#include "admin/console/reply.h"
#include "model/registry.h"
#include "wire/writer.h"

void console_welcome_write(const struct client_link *client, struct buffer *out)
{
	const struct registry *registry = link_registry(&client->link);
	const struct settings *settings = registry->process->settings;
	const char *notice = settings->login_notify_message;
	char version[32];

	snprintf(version, sizeof(version), "%s/bouncer", compat_text(settings->compat_version));
	writer_authentication(out, AUTH_OK, NULL, 0);
	writer_parameter_status(out, "server_version", version);
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
