/* SPDX-License-Identifier: ISC */
/* Aborts the process on a failed check. */
#include "base/check.h"

#include <stdlib.h>

#include "base/log.h"

_Noreturn void check_failed(
	const char *file, int line, const char *function, const char *condition)
{
	log_write(LEVEL_FATAL, "@%s:%d in function %s(): check failed: %s", file, line,
		function, condition);
	abort();
}
