#!/bin/sh
# SPDX-License-Identifier: ISC
# Run a test program and mend its TAP for automake's driver: cmocka says `not ok` of what it skipped,
# and an exit status that only repeats a `not ok` would be counted once more.
told=$("$@" 2>&1)
status=$?
printf '%s\n' "$told" | sed 's/^not ok \([0-9]*\) # SKIP */ok \1 # SKIP /'
if printf '%s\n' "$told" | sed '/# SKIP/d' | grep -q '^not ok '; then
	exit 0
fi
exit $status
