#!/bin/sh
# SPDX-License-Identifier: ISC
# See pgusher work: installs what is missing, builds it, puts it in front of a throw-away PostgreSQL,
# runs a short pgbench through it, shows the pools, and stays until Ctrl-C (with --once: ends).
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/etc/build.sh"

port=${PGUSHER_PORT:-6432}
once=no
case ${1:-} in
	'') ;;
	--once) once=yes ;;
	*) die "usage: sh etc/quickstart.sh [--once]
PGUSHER_PORT names another port than 6432." ;;
esac

need_packages $build_packages $postgres_packages
find_postgres
PATH=$pgbin:$PATH
for program in psql pgbench; do
	command -v $program >/dev/null || die "No $program in $pgbin nor elsewhere"
done

say 'Building pgusher in build/release'
mkdir -p "$top/build"
{ prepare_sources && build_in release; } >"$top/build/release.log" 2>&1 || {
	tail -n 40 "$top/build/release.log" >&2
	die 'The build failed; all it said is in build/release.log'
}

folder=$(mktemp -d /tmp/pgusher-quickstart.XXXXXX)
server=
pooler=

# stop PID SIGNAL: end a process of ours, if need be the hard way, and wait for it.
stop() {
	[ -n "$1" ] && kill -s "$2" "$1" 2>/dev/null || return 0
	(sleep 10 && kill -s KILL "$1") >/dev/null 2>&1 </dev/null &
	watchdog=$!
	wait "$1" 2>/dev/null || :
	kill -s KILL $watchdog 2>/dev/null || :
	wait $watchdog 2>/dev/null || :
}

clean_up() {
	trap '' INT TERM HUP
	stop "$pooler" QUIT
	stop "$server" INT
	rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# PostgreSQL and pgusher refuse to be root.
as_user=
switch=
user=$(id -un)
if [ "$(id -u)" -eq 0 ]; then
	user=nobody
	id postgres >/dev/null 2>&1 && user=postgres
	as_user="setpriv --reuid=$user --regid=$(id -g "$user") --clear-groups"
	switch="-u $user"
	chown "$user" "$folder"
fi

# until_ready PID LOG COMMAND...: wait until the command succeeds, while the process lives.
until_ready() {
	process=$1 log=$2
	shift 2
	tries=300
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		if [ $tries -eq 0 ] || ! kill -0 "$process" 2>/dev/null; then
			cat "$log" >&2
			exit 1
		fi
		sleep 0.1
	done
}

say "Starting a PostgreSQL of $pgbin in $folder"
# It listens on a unix socket of its own only, so its port is free.
cd "$folder"
$as_user initdb -D "$folder/data" -U app --auth=trust --encoding=UTF8 --no-locale \
	--no-sync >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2; exit 1; }
$as_user postgres -D "$folder/data" -k "$folder" -p 5432 -c listen_addresses= \
	-c fsync=off -c max_connections=30 >"$folder/postgres.log" 2>&1 &
server=$!
until_ready $server "$folder/postgres.log" \
	psql -X -h "$folder" -p 5432 -U app -d postgres -c 'SELECT 1'
psql -X -q -h "$folder" -p 5432 -U app -d postgres -c 'CREATE DATABASE app'

say "Starting pgusher on 127.0.0.1:$port in front of it"
cat >"$folder/pgusher.ini" <<EOF
[databases]
app = host=$folder port=5432

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir = $folder
auth_type = trust
auth_file = $folder/userlist.txt
admin_users = pgbouncer
pool_mode = transaction
default_pool_size = 20
EOF
printf '"app" ""\n"pgbouncer" ""\n' >"$folder/userlist.txt"
chmod -R go+rX "$folder/pgusher.ini" "$folder/userlist.txt"
# shellcheck disable=SC2086  # options or nothing
"$top/build/release/pgusher" $switch "$folder/pgusher.ini" >"$folder/pgusher.log" 2>&1 &
pooler=$!
until_ready $pooler "$folder/pgusher.log" \
	psql -X -h "$folder" -p "$port" -U app -d app -c 'SELECT 1'
if grep 'cannot listen' "$folder/pgusher.log" >&2; then
	die "PGUSHER_PORT names another port than $port"
fi
through_pool="-h 127.0.0.1 -p $port -U app"

say 'Filling it, then 100 clients of pgbench on a pool of 20, for 5 seconds'
pgbench -i -q $through_pool app >"$folder/fill.log" 2>&1 ||
	{ cat "$folder/fill.log" >&2; exit 1; }
pgbench -n -c 100 -j 2 -T 5 $through_pool app >"$folder/pgbench.log" 2>&1 ||
	{ cat "$folder/pgbench.log" >&2; exit 1; }
cat "$folder/pgbench.log"

say
say 'The console: SHOW POOLS'
psql -X -h 127.0.0.1 -p "$port" -U pgbouncer -d pgbouncer -c 'SHOW POOLS'

[ $once = no ] || exit 0
say "pgusher serves on 127.0.0.1:$port. In another window:

  psql -h 127.0.0.1 -p $port -U app app                # the database
  psql -h 127.0.0.1 -p $port -U pgbouncer pgbouncer    # the console: SHOW HELP

Its configuration and log are in $folder. Ctrl-C ends and removes everything."
wait $pooler || :
say 'pgusher has ended:'
tail -n 5 "$folder/pgusher.log"
