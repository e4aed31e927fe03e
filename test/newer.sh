# SPDX-License-Identifier: ISC
# PostgreSQL 18 for test/run.sh, which sources this: Debian 12 has neither its server nor its libpq.
# Tests that need a part which is not available are left out, and the verdict names them.

# Find the server's programs: in the folder that PGUSHER_TEST_PG18BIN names, in Debian's folder, or
# fetched with Maven. Sets $pg18bin, empty if there is no server.
find_postgres_18() {
	pg18bin=${PGUSHER_TEST_PG18BIN:-/usr/lib/postgresql/18/bin}
	if [ ! -x "$pg18bin/postgres" ]; then
		pg18bin=$programs/postgresql-18/bin
		fetch_postgres_18 >"$logs/postgresql-18.log" 2>&1
	fi
	"$pg18bin/postgres" --version >/dev/null 2>&1 && [ -x "$pg18bin/initdb" ] && return
	not_checked "tests against PostgreSQL 18 (name the folder of its programs in" \
		"PGUSHER_TEST_PG18BIN, or install Maven)"
	pg18bin=
}

fetch_postgres_18() {
	case $(uname -m) in
		x86_64) machine=amd64 ;;
		aarch64) machine=arm64v8 ;;
		*) return 1 ;;
	esac
	kept=$top/build/postgresql-18
	if ! ls "$kept"/*.jar >/dev/null 2>&1; then
		artifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-$machine:18.1.0
		timeout 300 mvn -B -q dependency:copy "-Dartifact=$artifact" \
			"-DoutputDirectory=$kept" </dev/null || return 1
	fi
	mkdir "$programs/postgresql-18" "$programs/jar" &&
		/usr/bin/python3 -m zipfile -e "$kept"/*.jar "$programs/jar" &&
		tar -xJf "$programs"/jar/*.txz -C "$programs/postgresql-18" &&
		rm -r "$programs/jar"
}

# find_libpq_18 PYTHON: find PostgreSQL 18's libpq for this Python, in the package psycopg[binary]: in
# the folder that PGUSHER_TEST_LIBPQ names, or fetched with pip.
find_libpq_18() {
	python=$1
	libpq=${PGUSHER_TEST_LIBPQ:-$top/build/libpq}
	has_libpq_18 || [ -n "${PGUSHER_TEST_LIBPQ:-}" ] || fetch_libpq_18 >"$logs/libpq.log" 2>&1
	if has_libpq_18; then
		export PGUSHER_TEST_LIBPQ="$libpq"
	else
		unset PGUSHER_TEST_LIBPQ
		not_checked "tests with libpq of PostgreSQL 18 (name a folder with psycopg[binary] in" \
			"PGUSHER_TEST_LIBPQ, or install pip)"
	fi
}

has_libpq_18() {
	PYTHONPATH=$libpq "$python" -c \
		'import psycopg; assert psycopg.pq.version() >= 180000' 2>/dev/null
}

fetch_libpq_18() {
	rm -rf "$libpq"
	for pip in "$python -m pip" "pip3 --python $python"; do
		# shellcheck disable=SC2086  # a command of several words
		timeout 300 $pip install --quiet --target "$libpq" --only-binary :all: \
			'psycopg[binary]>=3.3' </dev/null && return
	done
}
