/* SPDX-License-Identifier: ISC */
/*
 * The files of the page, as they are in src/admin/page/files; src/admin/page/embed.sh makes the
 * source of this at build time.
 */
#ifndef PGUSHER_ADMIN_PAGE_PAGE_FILES_H
#define PGUSHER_ADMIN_PAGE_PAGE_FILES_H

#include <stddef.h>

struct page_file {
	const char *name; /* of the file: "page.html"; NULL: behind the last one */
	const unsigned char *bytes;
	size_t length;
};

extern const struct page_file page_files[];

#endif
