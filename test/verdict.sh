# SPDX-License-Identifier: ISC
# The verdict of test/run.sh, which sources this: what was counted, what was not checked, and which
# tests passed only at their second try. test/lint/verdict.py tests it.
# The caller sets $notes, a folder for the lists `retried` and `not_checked`, and defines say().

# A test that passes at its second try costs one retry. More retries than this in one run of
# test/run.sh fail it: each test above the budget counts as failed. Two for each of its three
# stages; two of them run some 7,000 tests.
retry_budget=6

passed=0
failed=0

# add_result GOOD BAD: add a stage to the sums.
add_result() {
	passed=$((passed + $1))
	failed=$((failed + $2))
}

# collect_retries NAME LOG: keep the lines `RETRIED TEST (REASON)` that test/integration/conftest.py
# wrote to the log of a stage.
collect_retries() {
	sed -n "s|^RETRIED |$1: |p" "$2" >>"$notes/retried"
}

# collect_skipped_lints LOG: keep the checks of the tree that automake's test driver reports as
# skipped, `SKIP: test/lint/NAME.py NUMBER - TEXT # SKIP REASON`.
collect_skipped_lints() {
	sed -n 's|^SKIP: \(test/lint/[^ ]*\).* # SKIP *\(.*\)|\1: \2|p' "$1" >>"$notes/not_checked"
}

# not_checked WORD...: keep a line about something that this run could not check.
not_checked() {
	printf '%s\n' "$*" >>"$notes/not_checked"
}

# spend_retries: print the tests that needed a second try, and count those above the budget as failed.
spend_retries() {
	[ -s "$notes/retried" ] || return 0
	say "Passed only at the second try:"
	cat "$notes/retried"
	excess=$(($(wc -l <"$notes/retried") - retry_budget))
	[ "$excess" -gt 0 ] || return 0
	say "More than $retry_budget tests needed a second try: $excess of them count as failed"
	add_result "-$excess" "$excess"
}

# close_run: print the verdict. Its last line is `N passed, N failed`. Returns 0 if the run is good.
close_run() {
	spend_retries
	if [ -s "$notes/not_checked" ]; then
		awk '!seen[$0]++ { print "Not checked: " $0 }' "$notes/not_checked"
	fi
	say "$passed passed, $failed failed"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
