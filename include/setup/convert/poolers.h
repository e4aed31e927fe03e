/* SPDX-License-Identifier: ISC */
/*
 * The other poolers. Each function fills the draft, the HBA text and the findings of a conversion
 * from the text of the main file; files that it names are read too. Returns false, and adds an
 * error to the findings, if the text cannot be read: nothing is then to be written.
 */
#ifndef PGUSHER_SETUP_CONVERT_POOLERS_H
#define PGUSHER_SETUP_CONVERT_POOLERS_H

#include "setup/convert/conversion.h"

bool odyssey_convert(struct conversion *conversion, const char *text, size_t length);
bool pgagroal_convert(struct conversion *conversion, const char *text, size_t length);
bool pgcat_convert(struct conversion *conversion, const char *text, size_t length);

#endif
