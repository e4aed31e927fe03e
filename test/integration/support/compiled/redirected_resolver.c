/* SPDX-License-Identifier: ISC */
/*
 * Preloaded: the system's resolver sends its questions to 127.0.0.1, to the port in TEST_DNS_PORT.
 * (/etc/resolv.conf cannot name a port, and a change of it would affect the whole machine.)
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdlib.h>

int res_query(const char *name, int class, int type, unsigned char *answer, int size)
{
	struct __res_state state = {0};
	int length;

	if (res_ninit(&state) != 0)
		return -1;
	state.nscount = 1;
	state.retrans = 1;
	state.retry = 1;
	state.nsaddr_list[0] = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((unsigned short)atoi(getenv("TEST_DNS_PORT"))),
	};
	length = res_nquery(&state, name, class, type, answer, size);
	res_nclose(&state);
	return length;
}
