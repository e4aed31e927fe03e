/* SPDX-License-Identifier: ISC */
/* Names of messages, one row per letter and direction. */
#include "wire/message.h"

static const char *const client_names[UINT8_MAX + 1] = {
	[PQ_BIND] = "Bind",
	[PQ_CLOSE] = "Close",
	[PQ_COPY_DATA] = "CopyData",
	[PQ_COPY_DONE] = "CopyDone",
	[PQ_COPY_FAIL] = "CopyFail",
	[PQ_DESCRIBE] = "Describe",
	[PQ_EXECUTE] = "Execute",
	[PQ_FLUSH] = "Flush",
	[PQ_FUNCTION_CALL] = "FunctionCall",
	[PQ_PARSE] = "Parse",
	[PQ_PASSWORD] = "Password",
	[PQ_QUERY] = "Query",
	[PQ_SYNC] = "Sync",
	[PQ_TERMINATE] = "Terminate",
};

static const char *const server_names[UINT8_MAX + 1] = {
	[PQ_AUTHENTICATION] = "Authentication",
	[PQ_BACKEND_KEY_DATA] = "BackendKeyData",
	[PQ_BIND_COMPLETE] = "BindComplete",
	[PQ_CLOSE_COMPLETE] = "CloseComplete",
	[PQ_COMMAND_COMPLETE] = "CommandComplete",
	[PQ_COPY_BOTH_RESPONSE] = "CopyBothResponse",
	[PQ_COPY_DATA] = "CopyData",
	[PQ_COPY_DONE] = "CopyDone",
	[PQ_COPY_IN_RESPONSE] = "CopyInResponse",
	[PQ_COPY_OUT_RESPONSE] = "CopyOutResponse",
	[PQ_DATA_ROW] = "DataRow",
	[PQ_EMPTY_QUERY_RESPONSE] = "EmptyQueryResponse",
	[PQ_ERROR_RESPONSE] = "ErrorResponse",
	[PQ_FUNCTION_CALL_RESPONSE] = "FunctionCallResponse",
	[PQ_NEGOTIATE_PROTOCOL_VERSION] = "NegotiateProtocolVersion",
	[PQ_NO_DATA] = "NoData",
	[PQ_NOTICE_RESPONSE] = "NoticeResponse",
	[PQ_NOTIFICATION_RESPONSE] = "NotificationResponse",
	[PQ_PARAMETER_DESCRIPTION] = "ParameterDescription",
	[PQ_PARAMETER_STATUS] = "ParameterStatus",
	[PQ_PARSE_COMPLETE] = "ParseComplete",
	[PQ_PORTAL_SUSPENDED] = "PortalSuspended",
	[PQ_READY_FOR_QUERY] = "ReadyForQuery",
	[PQ_ROW_DESCRIPTION] = "RowDescription",
};

const char *message_client_name(uint8_t letter)
{
	return client_names[letter];
}

const char *message_server_name(uint8_t letter)
{
	return server_names[letter];
}
