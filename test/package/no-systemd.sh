#!/bin/sh
# SPDX-License-Identifier: ISC
# no-systemd.sh DATABASE: in a root without systemd, with packages in /srv: install, start, upgrade
# under pgbench, stop; replace a PgBouncer under pgbench. Run by debian.sh.
set -eux
through=$1

mkdir -p /run/postgresql
chown postgres:postgres /run/postgresql
pg_ctlcluster 15 main start
su postgres -c "psql -c \"CREATE ROLE app LOGIN PASSWORD 'secret'\" -c 'CREATE DATABASE app OWNER app'"
PGPASSWORD=secret pgbench -i -q -h localhost -U app app

dpkg -i /srv/before/pgusher_*.deb
! /etc/init.d/pgusher status
sed -i 's/^;app = /app = /' /etc/pgusher/pgusher.ini
/etc/init.d/pgusher start
for try in $(seq 50); do
	! psql -Atqc 'SELECT 1' "$through" || break
	sleep 0.1
done
/etc/init.d/pgusher status
old=$(cat /run/pgusher/pgusher.pid)

bench_begin() {
	pgbench -n -c 10 -j 2 -T 8 -P 1 "$@" "$through" >/srv/bench 2>&1 &
	bench=$!
	until grep -q '^progress' /srv/bench; do
		sleep 0.1
	done
}

bench_end() {
	wait $bench
	cat /srv/bench
	grep -q '^number of failed transactions: 0 ' /srv/bench
}

bench_begin -M prepared
dpkg -i /srv/pgusher_*.deb
new=$(cat /run/pgusher/pgusher.pid)
[ "$new" != "$old" ]
bench_end

# A configuration with mistakes: the old process goes on.
echo 'pool_mode = nonsense' >>/etc/pgusher/pgusher.ini
dpkg -i /srv/before/pgusher_*.deb 2>&1 | tee /srv/said
[ "$(grep -c '^pgusher: ' /srv/said)" = 1 ]
[ "$(cat /run/pgusher/pgusher.pid)" = "$new" ]
psql -Atqc 'SELECT 1' "$through"
sed -i '/nonsense/d' /etc/pgusher/pgusher.ini

dpkg --purge pgusher
! kill -s 0 "$new"
[ ! -e /etc/pgusher ] && [ ! -e /var/log/pgusher ]

# From Debian's pgbouncer, by the commands of doc/upgrading.md.
dpkg -i /srv/pgbouncer_*.deb
sed -i 's/^\[databases\]/&\napp = host=127.0.0.1 port=5432/' /etc/pgbouncer/pgbouncer.ini
echo '"app" "secret"' >/etc/pgbouncer/userlist.txt
/etc/init.d/pgbouncer start
for try in $(seq 50); do
	! psql -Atqc 'SELECT 1' "$through" || break
	sleep 0.1
done
old=$(cat /run/postgresql/pgbouncer.pid)
dpkg -i /srv/pgusher_*.deb
bench_begin
cd /srv
. /srv/without-systemd.sh
# The new process writes the file when the old one has removed it.
for try in $(seq 50); do
	[ ! -s /run/postgresql/pgbouncer.pid ] || break
	sleep 0.1
done
[ "$(cat /run/postgresql/pgbouncer.pid)" != "$old" ]
/etc/init.d/pgusher restart
bench_end
/etc/init.d/pgusher status
grep -q secret /etc/pgbouncer/userlist.txt
dpkg --purge pgusher-pgbouncer pgusher
! psql -Atqc 'SELECT 1' "$through"
pg_ctlcluster 15 main stop
echo 'all done'
