/* SPDX-License-Identifier: ISC */
#include "wire/sqlstate.h"

#include <string.h>

/* Sorted. */
const char *const sqlstate_classes[SQLSTATE_CLASSES] = {
	"00",
	"01",
	"02",
	"03",
	"08",
	"09",
	"0A",
	"0B",
	"0F",
	"0L",
	"0P",
	"0Z",
	"10",
	"20",
	"21",
	"22",
	"23",
	"24",
	"25",
	"26",
	"27",
	"28",
	"2B",
	"2D",
	"2F",
	"34",
	"38",
	"39",
	"3B",
	"3D",
	"3F",
	"40",
	"42",
	"44",
	"53",
	"54",
	"55",
	"57",
	"58",
	"72",
	"F0",
	"HV",
	"P0",
	"XX",
};

unsigned sqlstate_class(const char *sqlstate)
{
	unsigned i = 0;

	if (!sqlstate || strlen(sqlstate) != 5)
		return SQLSTATE_CLASSES - 1;
	while (i < SQLSTATE_CLASSES - 1 && memcmp(sqlstate, sqlstate_classes[i], 2) != 0)
		i++;
	return i;
}
