/* SPDX-License-Identifier: ISC */
#include "net/crew/own_loop.h"

#include "net/crew/crew_parts.h"

_Thread_local struct crew_member *crew_here;

bool crew_is_own(const struct loop *loop)
{
	const struct crew_member *member = loop ? loop->member : NULL;

	/*
	 * `running` changes before the first thread starts and after the last has ended, and
	 * only the main thread, which is member 0, reads `still`.
	 */
	return !member || !member->crew->running || crew_here == member ||
		(crew_here && crew_here->index == 0 && crew_here->crew == member->crew &&
			crew_here->crew->still);
}
