/* SPDX-License-Identifier: ISC */
#include "config/tcp_settings.h"

struct tcp_options tcp_settings_options(const struct settings *settings)
{
	return (struct tcp_options){
		.keepalive = settings->tcp_keepalive,
		.keepcnt = settings->tcp_keepcnt,
		.keepidle = settings->tcp_keepidle,
		.keepintvl = settings->tcp_keepintvl,
		.user_timeout = settings->tcp_user_timeout,
		.buffer = settings->tcp_socket_buffer,
	};
}
