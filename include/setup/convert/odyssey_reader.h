/* SPDX-License-Identifier: ISC */
/*
 * Reads the block language of odyssey.conf into the tree of a source.
 *
 *	keyword value...
 *	keyword value... { statements }
 *
 * A value is a text in double quotes, a number, an address, or one of the words yes, no, on, off,
 * true, false, default, local, host, hostssl, hostnossl; any other word begins a statement. Line
 * ends count as blanks; # starts a comment. A statement with a block becomes a table, whose text is
 * its first value; another one a word or a string; further values are its arguments.
 *
 * `include "PATH"` is replaced by the statements of that file. A relative name is looked for in
 * the working directory, then in the folder of the file that has it.
 */
#ifndef PGUSHER_SETUP_CONVERT_ODYSSEY_READER_H
#define PGUSHER_SETUP_CONVERT_ODYSSEY_READER_H

#include "setup/convert/source.h"

enum {
	/* Levels of include below the main file. */
	ODYSSEY_NESTING_LIMIT = 10,
	ODYSSEY_FILES_MOST = 256,
};

/*
 * Add the text to the root of a source. Returns false, and adds an error, at the first mistake.
 */
bool odyssey_read(struct source *source, const char *file, const char *text, size_t length,
	struct problems *problems);

#endif
