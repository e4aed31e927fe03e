/* SPDX-License-Identifier: ISC */
/*
 * Hints for misspelt commands: the command of SHOW HELP that a text is most similar to.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_HINTS_H
#define PGUSHER_ADMIN_CONSOLE_HINTS_H

#include "admin/console/grammar.h"

enum { HINT_SIZE = 160 };

/*
 * Write a hint such as `did you mean SHOW POOLS?` for an invalid command with these words.
 * Returns false if no command is similar.
 */
bool hints_for_command(const struct command_words *words, char hint[HINT_SIZE]);

#endif
