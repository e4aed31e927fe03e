#!/bin/sh
# SPDX-License-Identifier: ISC
# Run every test: install what is missing, build plainly and with sanitizers below build/, and
# print a verdict that ends with the line `N passed, N failed`. The integration tests run twice, and
# the two runs differ in all: the plain build with one worker against Debian's PostgreSQL, and the
# build with AddressSanitizer with several workers against PostgreSQL 18, if that is available. The
# tests of threads and workers run under ThreadSanitizer too.
#   PGUSHER_TEST_FAST=1            leave out the integration tests of the sanitizer builds
#   PGUSHER_TEST_ALL=1             test the plain build with several workers too, against PostgreSQL 18,
#                                  and the one with AddressSanitizer against Debian's PostgreSQL
#   PGUSHER_TEST_THREADS=1         run all tests under ThreadSanitizer, not only those of the threads
#   PGUSHER_TEST_WORKERS=N         with how many workers the sanitizer builds are tested (4)
#   PGUSHER_TEST_PATRONI=1         run the tests of Patroni with etcd too
#   PGUSHER_TEST_PGBIN=FOLDER      test against the PostgreSQL with its programs in this folder
#   PGUSHER_TEST_PG18BIN=FOLDER    the programs of PostgreSQL 18
#   PGUSHER_TEST_LIBPQ=FOLDER      a folder with psycopg[binary], which has PostgreSQL 18's libpq
#   PGUSHER_TEST_DRIVERS=FOLDER    the folder in which test/drivers/build.py builds the drivers
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/etc/build.sh"
. "$top/test/newer.sh"
. "$top/test/verdict.sh"

need_packages $build_packages $postgres_packages libcmocka-dev openssl strace valgrind dnsmasq-base slapd pgbouncer haproxy \
	logrotate pgbadger chromium \
	python3-pytest python3-pytest-xdist python3-psycopg python3-psycopg2 python3-asyncpg python3-pg8000 \
	python3-django python3-sqlalchemy ruby-pg ruby-activerecord python3-prometheus-client \
	tmux python3-pip python3-yaml prometheus prometheus-pgbouncer-exporter
[ "${PGUSHER_TEST_PATRONI:-0}" != 1 ] || need_packages patroni etcd-server
# 11 MB to fetch and 58 MB installed, since PostgreSQL brings its libllvm14. Without it the run goes
# on, and the verdict names the check that was skipped (test/lint/format.py).
if ! command -v clang-format-14 >/dev/null && apt-cache show clang-format-14 >/dev/null 2>&1; then
	(need_packages clang-format-14)
fi
find_postgres
export PGUSHER_TEST_PGBIN="$pgbin"

workers=${PGUSHER_TEST_WORKERS:-4}
running=
logs=$top/build/logs
mkdir -p "$logs"
programs=$(mktemp -d /tmp/pgusher-programs.XXXXXX)
chmod 755 "$programs"
notes=$programs/notes
mkdir "$notes"
clean_up() {
	[ -z "$running" ] || kill "$running" 2>/dev/null
	rm -rf "$programs"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# stage NAME COMMAND...: run a command with a time limit and write its output to build/logs/NAME.log.
# It runs in the background, so that a signal to this script ends it at once.
stage() {
	log=$logs/$1.log
	shift
	timeout 1800 "$@" >"$log" 2>&1 </dev/null &
	running=$!
	wait $running
	result=$?
	running=
	return $result
}

# count WORD: print the sum of the numbers behind `# WORD:` in the stage's log.
count() {
	sed -n "s/^# $1: *\([0-9]*\)\$/\1/p" "$log" | awk '{ sum += $1 } END { print sum + 0 }'
}

# attribute NAME: print the sum of a number in the summaries that pytest wrote to $report-*.xml.
attribute() {
	sed -n "s/.*<testsuite [^>]*\b$1=\"\([0-9]*\)\".*/\1/p" "$report"-*.xml |
		awk '{ sum += $1 } END { print sum + 0 }'
}

# report NAME GOOD BAD RESULT: add a stage to the sums, and print its log if it failed. A stage that
# failed without a failed test counts as one failed test.
report() {
	bad=$3
	[ "$4" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	add_result "$2" "$bad"
	say "$1: $2 passed, $bad failed"
	collect_retries "$1" "$log"
	[ "$bad" -eq 0 ] || grep -Ev '^(PASS: |ok |  (CC|CCLD|AR|GEN) )' "$log" | tail -n 400
}

build() { # build NAME OPTION...
	say "Building build/$1"
	stage "build-$1" sh -c '. "$top/etc/build.sh"; prepare_sources && build_in "$@"' sh "$@" &&
		return 0
	report "Build of build/$1" 0 1 1
	return 1
}

# check NAME [TEST...]: run the unit tests, the seeds of the fuzzers and the checks of the tree; or these
# unit tests only.
check() {
	name=$1
	shift
	# check-TESTS builds what these tests need.
	if [ $# -gt 0 ]; then
		set -- check-TESTS TESTS="$*"
	else
		set -- check
	fi
	stage "check-$name" make --no-print-directory -k -j"$jobs" -C "$top/build/$name" "$@"
	result=$?
	collect_skipped_lints "$log"
	good=$(count PASS)
	bad=$(($(count FAIL) + $(count XPASS) + $(count ERROR)))
	[ "$bad" -eq 0 ] || cat "$top/build/$name/test-suite.log" >"$log"
	report "Unit tests and checks of build/$name" "$good" "$bad" $result
}

# integration NAME WORKERS [STAGE FOLDER WORDS ALONE]: run the integration tests, by pgushers with so
# many workers, against $pgbin, or against the PostgreSQL with its programs in FOLDER. ALONE=no leaves
# out those that measure times.
integration() {
	stage=integration-${3:-$1}
	# The user that the servers run as may be unable to enter the tree, so copy the programs. Replace
	# the files instead of writing to them: a failed test may have left a process that still runs one.
	for program in pgusher pgusher-top; do
		[ ! -x "$top/build/$1/$program" ] ||
			cp --remove-destination "$top/build/$1/$program" "$programs/$program" || exit 1
	done
	report=$logs/$stage
	rm -f "$report"-*.xml
	stage "$stage" env PGUSHER_BIN="$programs/pgusher" PGUSHER_TEST_PGBIN="${4:-$pgbin}" \
		PGUSHER_WORKERS="$2" make --no-print-directory -C "$top/build/$1" check-integration \
		PYTEST_REPORT="$report" PYTEST_FLAGS="${PYTEST_FLAGS:-}" PYTEST_ALONE="${6:-yes}"
	result=$?
	good=0 bad=0
	if [ -f "$report-1.xml" ]; then
		bad=$(($(attribute failures) + $(attribute errors)))
		good=$(($(attribute tests) - bad - $(attribute skipped)))
	fi
	report "Integration tests of build/$1 with workers = $2${5:+ $5}" "$good" "$bad" $result
}

# integration_18 NAME ALONE: run the integration tests with several workers against PostgreSQL 18, or
# against Debian's if there is none; psql and pgbench are Debian's. ALONE is as above.
integration_18() {
	if [ -n "$pg18bin" ]; then
		integration "$1" "$workers" "$1-18" "$pg18bin" "against PostgreSQL 18" "$2"
	else
		integration "$1" "$workers" "$1-$workers" "$pgbin" "" "$2"
	fi
}

# Build the drivers that Debian does not have, with the language runtimes that are installed.
build_drivers() {
	export PGUSHER_TEST_DRIVERS="${PGUSHER_TEST_DRIVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/pgusher-drivers}"
	say "Building drivers in $PGUSHER_TEST_DRIVERS"
	stage build-drivers timeout 900 nice /usr/bin/python3 "$top/test/drivers/build.py" \
		"$PGUSHER_TEST_DRIVERS"
	sed -n 's/^\([a-z]*\): \(left out\|broken\).*/drivers of &/p' "$log" | cut -c 1-300 \
		>>"$notes/not_checked"
}

export top
pg18bin=
[ "${PGUSHER_TEST_FAST:-0}" = 1 ] || find_postgres_18
if build plain --enable-werror; then
	check plain
	build_drivers
	find_libpq_18 "$(sed -n 's/^PYTHON = //p' "$top/build/plain/Makefile")"
	integration plain 1
	[ "${PGUSHER_TEST_ALL:-0}" != 1 ] || integration_18 plain no
	if [ "${PGUSHER_TEST_FAST:-0}" != 1 ] && [ "${PGUSHER_TEST_ALL:-0}" != 1 ]; then
		# AddressSanitizer's allocator cannot be made to fail.
		flags=${PYTEST_FLAGS:-}
		PYTEST_FLAGS="$flags -k faults_system"
		integration plain "$workers" plain-faults "$pgbin" "short of memory and descriptors" no
		PYTEST_FLAGS=$flags
	fi
fi
if build sanitize --enable-werror --enable-sanitizers; then
	check sanitize
	# AddressSanitizer makes the daemon twice as slow.
	export PGUSHER_TEST_PATIENCE=2
	[ "${PGUSHER_TEST_FAST:-0}" = 1 ] || integration_18 sanitize yes
	[ "${PGUSHER_TEST_ALL:-0}" != 1 ] || integration sanitize "$workers"
fi
if build threads --enable-werror --enable-thread-sanitizer; then
	if [ "${PGUSHER_TEST_THREADS:-0}" = 1 ]; then
		check threads
	else
		check threads test/unit/net/crew/test_crew test/unit/net/crew/test_mailbox \
			test/unit/net/test_helper
		PYTEST_FLAGS="${PYTEST_FLAGS:-} -k workers"
	fi
	# ThreadSanitizer makes the daemon ten times as slow.
	export PGUSHER_TEST_PATIENCE=4
	[ "${PGUSHER_TEST_FAST:-0}" = 1 ] ||
		integration threads "$workers" threads "$pgbin" "under ThreadSanitizer" no
fi

close_run
