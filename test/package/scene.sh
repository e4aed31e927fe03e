# SPDX-License-Identifier: ISC
# What the scripts of this folder share to tell what they find: lines `ok`, `not ok`, and at the end
# `N passed, N failed`. Sourced; the caller sets $top, the tree, and $root, a root of root.sh.

scene_begin() {
	passed=0
	failed=0
	out=$roots/out
}

# check WHAT COMMAND...: the command succeeds. What it wrote is shown otherwise.
check() {
	what=$1
	shift
	if "$@" >"$out" 2>&1 </dev/null; then
		passed=$((passed + 1))
		printf 'ok - %s\n' "$what"
	else
		failed=$((failed + 1))
		printf 'not ok - %s\n' "$what"
		tail -n 20 "$out" | sed 's/^/# /'
	fi
}

not() {
	! "$@"
}

say_figures() {
	printf '# %s: %s\n' "$1" "$2"
}

# run COMMAND...: in $root.
run() {
	root_run "$root" "$@"
}

# wait_for COMMAND...: until it succeeds, for 20 seconds at most.
wait_for() {
	for try in $(seq 100); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.2
	done
	return 1
}

# commands PAGE HEADING: the code blocks that a page of doc/ has below a heading, as a script.
commands() {
	awk -v heading="$2" '
		/^#+ / { inside = $0; sub(/^#+ /, "", inside) }
		/^```$/ { code = 0 }
		code && inside == heading
		/^```sh$/ { code = 1 }
	' "$top/doc/$1"
}

# The last line is like that of test/run.sh.
scene_end() {
	printf '%s passed, %s failed\n' $passed $failed
	[ $failed -eq 0 ]
}
