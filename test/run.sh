#!/bin/sh
# SPDX-License-Identifier: ISC
# Run every test: installs what is missing, builds plainly and with sanitizers below build/, and
# closes with one line, `N passed, N failed`.
#   PGUSHER_TEST_FAST=1            leave out the integration tests of the sanitizer build, and those
#                                  against PostgreSQL 18
#   PGUSHER_TEST_PGBIN=FOLDER      test against the PostgreSQL whose programs are there
#   PGUSHER_TEST_PG18BIN=FOLDER    and the plain build against this one too, PostgreSQL 18
#   PGUSHER_TEST_LIBPQ=FOLDER      where psycopg[binary] is, whose libpq is of PostgreSQL 18
#   PGUSHER_TEST_DRIVERS=FOLDER    where test/drivers/build.py keeps what it makes
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/etc/build.sh"
. "$top/test/newer.sh"

need_packages $build_packages $postgres_packages libcmocka-dev openssl strace dnsmasq-base slapd pgbouncer \
	logrotate pgbadger \
	python3-pytest python3-pytest-xdist python3-psycopg python3-psycopg2 python3-asyncpg python3-pg8000 \
	python3-django python3-sqlalchemy ruby-pg ruby-activerecord python3-prometheus-client \
	python3-pip prometheus prometheus-pgbouncer-exporter
find_postgres
export PGUSHER_TEST_PGBIN="$pgbin"

passed=0
failed=0
running=
logs=$top/build/logs
mkdir -p "$logs"
programs=$(mktemp -d /tmp/pgusher-programs.XXXXXX)
chmod 755 "$programs"
clean_up() {
	[ -z "$running" ] || kill "$running" 2>/dev/null
	rm -rf "$programs"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# stage NAME COMMAND...: run it in the background, where a signal to us can end it; nothing may
# hang for ever. All it says goes to build/logs/NAME.log.
stage() {
	log=$logs/$1.log
	shift
	timeout 1500 "$@" >"$log" 2>&1 </dev/null &
	running=$!
	wait $running
	result=$?
	running=
	return $result
}

# count WORD: the sum of the numbers behind `# WORD:` in the stage's log.
count() {
	sed -n "s/^# $1: *\([0-9]*\)\$/\1/p" "$log" | awk '{ sum += $1 } END { print sum + 0 }'
}

# attribute NAME: the sum of a number in the summaries that pytest left in $report-*.xml.
attribute() {
	sed -n "s/.*<testsuite [^>]*\b$1=\"\([0-9]*\)\".*/\1/p" "$report"-*.xml |
		awk '{ sum += $1 } END { print sum + 0 }'
}

# tell NAME GOOD BAD RESULT: add a stage to the sum. One that fails without a failed test counts
# as one, and what it said is shown.
tell() {
	bad=$3
	[ "$4" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	passed=$((passed + $2))
	failed=$((failed + bad))
	say "$1: $2 passed, $bad failed"
	sed -n "s|^RETRIED |$1: |p" "$log" >>"$programs/retried"
	[ "$bad" -eq 0 ] || grep -Ev '^(PASS: |ok |  (CC|CCLD|AR|GEN) )' "$log" | tail -n 400
}

build() { # build NAME OPTION...
	say "Building build/$1"
	stage "build-$1" sh -c '. "$top/etc/build.sh"; prepare_sources && build_in "$@"' sh "$@" &&
		return 0
	tell "Build of build/$1" 0 1 1
	return 1
}

check() { # check NAME: unit tests, seeds of the fuzzers, checks of the tree
	stage "check-$1" make --no-print-directory -k -j"$jobs" -C "$top/build/$1" check
	result=$?
	good=$(count PASS)
	bad=$(($(count FAIL) + $(count XPASS) + $(count ERROR)))
	[ "$bad" -eq 0 ] || cat "$top/build/$1/test-suite.log" >"$log"
	tell "Unit tests and checks of build/$1" "$good" "$bad" $result
}

# integration NAME [STAGE FOLDER WORDS]: against PostgreSQL, or the one whose programs are there
integration() {
	stage=integration-${2:-$1}
	# Where the user that the servers run as can reach it, whoever owns the tree.
	# One that a failed test has left behind may still be running.
	cp --remove-destination "$top/build/$1/pgusher" "$programs/pgusher" || exit 1
	report=$logs/$stage
	rm -f "$report"-*.xml
	stage "$stage" env PGUSHER_BIN="$programs/pgusher" PGUSHER_TEST_PGBIN="${3:-$pgbin}" \
		make --no-print-directory -C "$top/build/$1" check-integration \
		PYTEST_REPORT="$report" PYTEST_FLAGS="${PYTEST_FLAGS:-}"
	result=$?
	good=0 bad=0
	if [ -f "$report-1.xml" ]; then
		bad=$(($(attribute failures) + $(attribute errors)))
		good=$(($(attribute tests) - bad - $(attribute skipped)))
	fi
	tell "Integration tests of build/$1${4:+ $4}" "$good" "$bad" $result
}

# Against PostgreSQL 18, where it can be had; psql and pgbench are those of the other.
integration_18() {
	find_postgres_18
	[ -z "$pg18bin" ] || integration plain plain-18 "$pg18bin" "against PostgreSQL 18"
}

# Drivers that Debian has not, by the runtimes that are here. What cannot be had is left out.
build_drivers() {
	export PGUSHER_TEST_DRIVERS="${PGUSHER_TEST_DRIVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/pgusher-drivers}"
	say "Building drivers in $PGUSHER_TEST_DRIVERS"
	stage build-drivers timeout 900 nice /usr/bin/python3 "$top/test/drivers/build.py" \
		"$PGUSHER_TEST_DRIVERS"
	sed -n 's/^\([a-z]*\): \(left out\|broken\).*/No drivers of \1: &/p' "$log" | cut -c 1-300
}

export top
if build plain --enable-werror; then
	check plain
	build_drivers
	find_libpq_18 "$(sed -n 's/^PYTHON = //p' "$top/build/plain/Makefile")"
	integration plain
	[ "${PGUSHER_TEST_FAST:-0}" = 1 ] || integration_18
fi
if build sanitize --enable-werror --enable-sanitizers; then
	check sanitize
	[ "${PGUSHER_TEST_FAST:-0}" = 1 ] || integration sanitize
fi

if [ -s "$programs/retried" ]; then
	say "Passed only at the second try:"
	cat "$programs/retried"
fi
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
