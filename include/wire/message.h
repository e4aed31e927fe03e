/* SPDX-License-Identifier: ISC */
/*
 * Letters and numbers of the PostgreSQL protocol as named constants.
 *
 * The two directions use the same letters for different messages: which enum applies depends
 * on the sender. Protocol: "Message Formats".
 */
#ifndef PGUSHER_WIRE_MESSAGE_H
#define PGUSHER_WIRE_MESSAGE_H

#include <stdint.h>

/* Messages from clients after the startup message. */
enum client_message {
	PQ_BIND = 'B',
	PQ_CLOSE = 'C',
	PQ_COPY_DATA = 'd', /* sent by servers too, like the next two */
	PQ_COPY_DONE = 'c',
	PQ_COPY_FAIL = 'f',
	PQ_DESCRIBE = 'D',
	PQ_EXECUTE = 'E',
	PQ_FLUSH = 'H',
	PQ_FUNCTION_CALL = 'F',
	PQ_PARSE = 'P',
	PQ_PASSWORD = 'p', /* also SASLInitialResponse and SASLResponse */
	PQ_QUERY = 'Q',
	PQ_SYNC = 'S',
	PQ_TERMINATE = 'X',
};

/* Messages from servers. */
enum server_message {
	PQ_AUTHENTICATION = 'R',
	PQ_BACKEND_KEY_DATA = 'K',
	PQ_BIND_COMPLETE = '2',
	PQ_CLOSE_COMPLETE = '3',
	PQ_COMMAND_COMPLETE = 'C',
	PQ_COPY_BOTH_RESPONSE = 'W',
	PQ_COPY_IN_RESPONSE = 'G',
	PQ_COPY_OUT_RESPONSE = 'H',
	PQ_DATA_ROW = 'D',
	PQ_EMPTY_QUERY_RESPONSE = 'I',
	PQ_ERROR_RESPONSE = 'E',
	PQ_FUNCTION_CALL_RESPONSE = 'V',
	PQ_NEGOTIATE_PROTOCOL_VERSION = 'v',
	PQ_NO_DATA = 'n',
	PQ_NOTICE_RESPONSE = 'N',
	PQ_NOTIFICATION_RESPONSE = 'A',
	PQ_PARAMETER_DESCRIPTION = 't',
	PQ_PARAMETER_STATUS = 'S',
	PQ_PARSE_COMPLETE = '1',
	PQ_PORTAL_SUSPENDED = 's',
	PQ_READY_FOR_QUERY = 'Z',
	PQ_ROW_DESCRIPTION = 'T',
};

/* The number at the start of an Authentication message. */
enum authentication_request {
	AUTH_OK = 0,
	AUTH_CLEARTEXT = 3,
	AUTH_MD5 = 5, /* four bytes of salt follow */
	AUTH_GSS = 7,
	AUTH_GSS_CONTINUE = 8,
	AUTH_SSPI = 9,
	AUTH_SASL = 10, /* a list of mechanism names follows, ended by an empty one */
	AUTH_SASL_CONTINUE = 11,
	AUTH_SASL_FINAL = 12,
};

/* The status byte of ReadyForQuery. */
enum ready_status {
	READY_IDLE = 'I',
	READY_IN_TRANSACTION = 'T',
	READY_FAILED_TRANSACTION = 'E',
};

/* The fields of ErrorResponse and NoticeResponse that are used here. */
enum report_field {
	REPORT_SEVERITY = 'S', /* may be translated */
	REPORT_SQLSTATE = 'C',
	REPORT_TEXT = 'M',
	REPORT_DETAIL = 'D',
	REPORT_HINT = 'H',
	REPORT_POSITION = 'P', /* counted in characters of the query's text, from 1 */
	REPORT_ROUTINE = 'R', /* function in the server's source */
};

/* The number after the length in a message without a letter: a version or a request. */
#define PROTOCOL_VERSION(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))
#define PROTOCOL_2_0 PROTOCOL_VERSION(2, 0)
#define PROTOCOL_3_0 PROTOCOL_VERSION(3, 0)
#define PROTOCOL_3_2 PROTOCOL_VERSION(3, 2)
#define CANCEL_REQUEST_CODE UINT32_C(80877102)
#define SSL_REQUEST_CODE UINT32_C(80877103)
#define GSSENC_REQUEST_CODE UINT32_C(80877104)
/* pgusher's own, in the range of the requests: see wire/peer_question. */
#define PEER_QUESTION_CODE PROTOCOL_VERSION(1234, 5740)

/*
 * Name of a message in the protocol's documentation, for logs. Returns NULL if the direction
 * has no message of this letter. The letter `p` is always named Password here.
 */
const char *message_client_name(uint8_t letter);
const char *message_server_name(uint8_t letter);

#endif
