/* SPDX-License-Identifier: ISC */
/* The lines above the views: which pooler it is, its figures, and what holds clients up. */
#ifndef PGUSHER_TOP_SUMMARY_H
#define PGUSHER_TOP_SUMMARY_H

#include "top/compose.h"

/* Add the lines to the page, at most `most` of them, the most important ones if not all fit. */
void summary_add(struct page *page, const struct compose_source *source, size_t most);

#endif
