/* SPDX-License-Identifier: ISC */
#include "wire/peer_question.h"

#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

enum { HEADER_SIZE = 8 };

void peer_question_write(struct buffer *buffer, const uint8_t nonce[PEER_NONCE_SIZE])
{
	writer_int32(buffer, HEADER_SIZE + PEER_NONCE_SIZE);
	writer_int32(buffer, PEER_QUESTION_CODE);
	writer_bytes(buffer, nonce, PEER_NONCE_SIZE);
}

const uint8_t *peer_question_nonce(const uint8_t *message, size_t total)
{
	return total == HEADER_SIZE + PEER_NONCE_SIZE ? message + HEADER_SIZE : NULL;
}

void peer_answer_write(struct buffer *buffer, unsigned id)
{
	writer_int32(buffer, PEER_ANSWER_SIZE);
	writer_int32(buffer, PEER_QUESTION_CODE);
	writer_int32(buffer, id);
}

unsigned peer_answer_read(const uint8_t answer[PEER_ANSWER_SIZE])
{
	struct reader reader;
	uint32_t length, code, id;

	reader_init(&reader, answer, PEER_ANSWER_SIZE);
	length = reader_int32(&reader);
	code = reader_int32(&reader);
	id = reader_int32(&reader);
	return length == PEER_ANSWER_SIZE && code == PEER_QUESTION_CODE && id <= PEER_ID_MAX
		? id
		: 0;
}
