#!/bin/sh
# SPDX-License-Identifier: ISC
# Run a test program and correct its TAP for automake's driver. cmocka reports a skipped test as
# `not ok`. automake counts an exit status other than 0 as one more failure, so exit with 0 after a
# `not ok`.
output=$("$@" 2>&1)
status=$?
printf '%s\n' "$output" | sed 's/^not ok \([0-9]*\) # SKIP */ok \1 # SKIP /'
if printf '%s\n' "$output" | sed '/# SKIP/d' | grep -q '^not ok '; then
	exit 0
fi
exit $status
