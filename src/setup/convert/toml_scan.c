/* SPDX-License-Identifier: ISC */
/* What lies between the parts of TOML: blanks, line ends, comments; and mistakes. */
#include <stdio.h>

#include "setup/convert/toml_parts.h"

bool toml_refuse(struct toml *toml, const char *at, const char *format, ...)
{
	char why[200];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	source_refuse(toml->problems, toml->file, toml->text, (size_t)(toml->end - toml->text),
		at, "%s", why);
	return false;
}

char toml_peek(const struct toml *toml)
{
	return toml->at < toml->end ? *toml->at : '\0';
}

void toml_skip_blanks(struct toml *toml)
{
	while (toml_peek(toml) == ' ' || toml_peek(toml) == '\t')
		toml->at++;
}

bool toml_skip_line_end(struct toml *toml)
{
	const char *at = toml->at;

	if (at < toml->end && *at == '\r')
		at++;
	if (at == toml->end || *at != '\n')
		return false;
	toml->at = at + 1;
	toml->line++;
	return true;
}

bool toml_skip_comment(struct toml *toml)
{
	if (toml_peek(toml) != '#')
		return true;
	for (; toml->at < toml->end && *toml->at != '\n'; toml->at++) {
		const unsigned char c = (unsigned char)*toml->at;
		const bool ends = c == '\r' && toml->end - toml->at > 1 && toml->at[1] == '\n';

		if (((c < ' ' && c != '\t') || c == 0x7f) && !ends)
			return toml_refuse(
				toml, toml->at, "a comment has no control characters");
	}
	return true;
}
