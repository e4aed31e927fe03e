/* SPDX-License-Identifier: ISC */
#include "wire/suspicion_signs.h"

#include <string.h>
#include <strings.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifdef __x86_64__

/*
 * Of 16 or 32 bytes, and the one behind each: is there a semicolon, or one of the pairs? A
 * semicolon has the bit of lower case already; with it an underscore is 0x7f.
 */
static inline bool has_sign_16(const uint8_t *at)
{
	const __m128i bit = _mm_set1_epi8(0x20);
	const __m128i here = _mm_or_si128(_mm_loadu_si128((const __m128i *)at), bit);
	const __m128i next = _mm_or_si128(_mm_loadu_si128((const __m128i *)(at + 1)), bit);
#define HERE(c) _mm_cmpeq_epi8(here, _mm_set1_epi8(c))
#define NEXT(c) _mm_cmpeq_epi8(next, _mm_set1_epi8(c))
	const __m128i found = _mm_or_si128(
		_mm_or_si128(_mm_or_si128(HERE(';'), _mm_and_si128(HERE('&'), NEXT('"'))),
			_mm_and_si128(HERE(0x7f), NEXT('c'))),
		_mm_or_si128(_mm_and_si128(HERE('d'), NEXT('v')),
			_mm_and_si128(HERE('m'), NEXT('p'))));
#undef HERE
#undef NEXT

	return _mm_movemask_epi8(found) != 0;
}

__attribute__((target("avx2"))) static inline bool has_sign_32(const uint8_t *at)
{
	const __m256i bit = _mm256_set1_epi8(0x20);
	const __m256i here = _mm256_or_si256(_mm256_loadu_si256((const __m256i *)at), bit);
	const __m256i next =
		_mm256_or_si256(_mm256_loadu_si256((const __m256i *)(at + 1)), bit);
#define HERE(c) _mm256_cmpeq_epi8(here, _mm256_set1_epi8(c))
#define NEXT(c) _mm256_cmpeq_epi8(next, _mm256_set1_epi8(c))
	const __m256i found = _mm256_or_si256(
		_mm256_or_si256(
			_mm256_or_si256(HERE(';'), _mm256_and_si256(HERE('&'), NEXT('"'))),
			_mm256_and_si256(HERE(0x7f), NEXT('c'))),
		_mm256_or_si256(_mm256_and_si256(HERE('d'), NEXT('v')),
			_mm256_and_si256(HERE('m'), NEXT('p'))));
#undef HERE
#undef NEXT

	return _mm256_movemask_epi8(found) != 0;
}

/* There are at least 33 bytes; the last step overlaps the one before it. */
__attribute__((target("avx2"))) static bool has_sign_in_32(
	const uint8_t *at, const uint8_t *end)
{
	for (; end - at > 32; at += 32) {
		if (has_sign_32(at))
			return true;
	}
	return has_sign_32(end - 32);
}

static bool has_sign_in(const uint8_t *at, const uint8_t *end)
{
	if (end - at > 32 && __builtin_cpu_supports("avx2"))
		return has_sign_in_32(at, end);
	for (; end - at > 16; at += 16) {
		if (has_sign_16(at))
			return true;
	}
	return has_sign_16(end - 16);
}

#else

static inline bool is_sign(uint8_t here, uint8_t next)
{
	here |= 0x20;
	next |= 0x20;
	return here == ';' || (here == '&' && next == '"') || (here == 0x7f && next == 'c') ||
		(here == 'd' && next == 'v') || (here == 'm' && next == 'p');
}

static bool has_sign_in(const uint8_t *at, const uint8_t *end)
{
	while (at < end && !is_sign(at[0], at[1]))
		at++;
	return at < end;
}

#endif

/* Is one of these bytes a semicolon? */
static inline bool in_four(const uint8_t *at)
{
	uint32_t four;

	memcpy(&four, at, sizeof(four));
	four ^= 0x3b3b3b3b;
	return ((four - 0x01010101) & ~four & 0x80808080) != 0;
}

static inline bool in_eight(const uint8_t *at)
{
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
	eight ^= 0x3b3b3b3b3b3b3b3b;
	return ((eight - 0x0101010101010101) & ~eight & 0x8080808080808080) != 0;
}

/* Of 3 to 15 bytes. */
static inline bool has_semicolon(const uint8_t *text, size_t length)
{
	if (length >= 8)
		return in_eight(text) || in_eight(text + length - 8);
	if (length >= 4)
		return in_four(text) || in_four(text + length - 4);
	return text[0] == ';' || text[1] == ';' || text[2] == ';';
}

/* Returns where the text begins behind white space and comments. */
static const uint8_t *skip_comments(const uint8_t *text, const uint8_t *end)
{
	while (text < end) {
		const uint8_t *close;

		if (*text == ' ' || (*text >= '\t' && *text <= '\r')) {
			text++;
			continue;
		}
		if (end - text < 4 || text[0] != '/' || text[1] != '*')
			break;
		close = memmem(text + 2, (size_t)(end - text) - 2, "*/", 2);
		if (!close)
			break;
		text = close + 2;
	}
	return text;
}

__attribute__((noinline)) bool suspicion_names_settings(const char *at, const char *end)
{
	static const char name[] = "_settings";
	const char *const begin = at;

	while ((at = memchr(at, '_', (size_t)(end - at))) != NULL) {
		if (at - begin >= 2 && (size_t)(end - at) >= sizeof(name) - 1 &&
			strncasecmp(at, name, sizeof(name) - 1) == 0 &&
			strncasecmp(at - 2, "pg", 2) == 0)
			return true;
		at++;
	}
	return false;
}

bool suspicion_may_be_in_any(const uint8_t *text, const uint8_t *end)
{
	if (end > text && *text <= '/')
		text = skip_comments(text, end);
	if (end - text < 5)
		return false;
	/* SET, LISTEN, LOAD, DECLARE; or another kind of comment. */
	if (((text[0] | 0x20) == 's' && (text[2] | 0x20) == 't') || (text[0] | 0x20) == 'l' ||
		((text[0] | 0x20) == 'd' && (text[2] | 0x20) == 'c') || text[0] <= '/')
		return true;
	if ((text[0] | 0x20) == 'u' && (text[1] | 0x20) == 'n') /* UNLISTEN */
		return true;
	/* UPDATE, EXPLAIN ANALYZE UPDATE, WITH ... UPDATE: these bits are those of e, g, u and w. */
	if ((text[0] | 0x32) == 'w' &&
		suspicion_names_settings((const char *)text, (const char *)end))
		return true;
	/* Without a final semicolon and the NUL. */
	if (end - text >= 2 + 16)
		return has_sign_in(text, end - 2);
	/* Too short for the words, but not for two statements. */
	return has_semicolon(text, (size_t)(end - text) - 2);
}
