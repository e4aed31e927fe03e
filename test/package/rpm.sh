#!/bin/sh
# SPDX-License-Identifier: ISC
# rpm.sh: build the RPM packages, and install, upgrade and remove them under systemd, in views of this
# machine (root.sh). Runs commands of doc/install-rpm.md. What dnf does, rpm --nodeps does here, since
# the packages of this machine are Debian's. For root; minutes, most of them for the packages.
#   PGUSHER_TEST_RPMS=FOLDER    packages that are built already, with the releases 1 and 2
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/test/package/root.sh"
. "$top/test/package/scene.sh"

through='postgresql://app:secret@localhost:6432/app'

make_packages() {
	rpms=${PGUSHER_TEST_RPMS:-$top/build/rpm}
	if [ -z "${PGUSHER_TEST_RPMS:-}" ]; then
		for release in 1 2; do
			RELEASE=$release sh "$top/etc/rpm/build.sh" || root_die 'The packages cannot be made'
		done
	fi
}

# machine NAME: a view with the packages in /srv/rpm and a PostgreSQL that serves the database app.
machine() {
	root_view "$1"
	mkdir -p "$root.files/srv/rpm"
	cp "$rpms"/pgusher*.rpm "$root.files/srv/rpm/"
	root_boot "$root"
	# A pgbouncer of this machine has the same files.
	run rm -rf /etc/pgbouncer /usr/sbin/pgbouncer /lib/systemd/system/pgbouncer.service
	programs=$(run sh -c 'ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1')
	run sh -ec "install -d -o postgres /var/lib/pgusher-test /run/postgresql
		su postgres -c '$programs/initdb -A scram-sha-256 --auth-local=trust -D /var/lib/pgusher-test/data'
		su postgres -c '$programs/pg_ctl -D /var/lib/pgusher-test/data -w -o \"-k /run/postgresql\" -l /var/lib/pgusher-test/log start'
		su postgres -c \"psql -c \\\"CREATE ROLE app LOGIN PASSWORD 'secret'\\\" -c 'CREATE DATABASE app OWNER app'\"" \
		>"$root.out" 2>&1 </dev/null || { tail "$root.out"; root_die 'PostgreSQL does not start'; }
}

install_page() {
	commands install-rpm.md "$1" | sed '1i cd /root' | run sh -e
}

answers() {
	[ "$(run psql -Atqc 'SELECT 42' "$through")" = 42 ]
}

main_pid() {
	run systemctl show --property=MainPID --value "${1:-pgusher.service}"
}

# package NAME RELEASE: the file, in the root.
package() {
	echo "/srv/rpm/$1-[0-9]*-$2.*.rpm"
}

scene_pgusher() {
	machine pgusher
	begun=$(date +%s%N)
	check 'install' run sh -c "rpm -i --nodeps $(package pgusher 1)"
	check 'it does not run yet' not run systemctl -q is-active pgusher
	check 'edit one line' install_page 'Edit one line'
	install_page 'Start' >"$root.out" 2>&1
	check 'start, and psql through it, as the page says' [ $? -eq 0 ]
	say_figures 'install' "from rpm -i to psql: $((($(date +%s%N) - begun) / 1000000)) ms"
	check 'psql got its row' grep -q '^(1 row)' "$root.out"
	check 'it runs as its own user' run sh -c "[ \$(stat -c %U /proc/$(main_pid)) = pgusher ]"
	check 'rights of the configuration' run sh -c \
		'[ "$(stat -c "%U:%G %a" /etc/pgusher/pgusher.ini /etc/pgusher/userlist.txt | uniq)" = "root:pgusher 640" ]'
	check 'after a rotation the log goes on' run sh -c \
		'logrotate -f /etc/logrotate.d/pgusher && psql -Atqc "SELECT 1" '"$through"' && [ -s /var/log/pgusher/pgusher.log.1 ] && [ -s /var/log/pgusher/pgusher.log ]'

	old=$(main_pid)
	(run pgbench -i -q "$through" && run pgbench -n -c 10 -j 2 -T 8 -P 1 -M prepared "$through") >"$root.bench" 2>&1 &
	bench=$!
	wait_for grep -q '^progress' "$root.bench"
	check 'upgrade' run sh -c "rpm -U --nodeps $(package pgusher 2)"
	check 'another process serves' [ "$(main_pid)" != "$old" ]
	wait $bench
	check 'no transaction failed' grep -q '^number of failed transactions: 0 ' "$root.bench"
	check 'no client was cut' not grep -qE 'aborted|terminated|closed the connection' "$root.bench"
	say_figures 'upgrade' "$(sed -n 's/^number of transactions actually processed: //p; s/^number of failed transactions: /failed: /p' "$root.bench" | paste -sd' ')"
	check 'the configuration is that of before' run grep -q '^app = ' /etc/pgusher/pgusher.ini

	old=$(main_pid)
	run sh -c 'echo "pool_mode = nonsense" >>/etc/pgusher/pgusher.ini'
	run sh -c "rpm -U --nodeps --oldpackage $(package pgusher 1)" >"$root.out" 2>&1
	check 'with mistakes in the configuration the installation ends well' [ $? -eq 0 ]
	check 'and says so in one line' [ "$(grep -c '^pgusher: ' "$root.out")" = 1 ]
	check 'and the old process goes on' sh -c "[ '$(main_pid)' = '$old' ]"
	check 'and serves' answers
	run sed -i '/nonsense/d' /etc/pgusher/pgusher.ini
	check 'corrected, a reload changes over' run systemctl reload pgusher
	check 'to the new program' [ "$(main_pid)" != "$old" ]

	check 'remove' run rpm -e --nodeps pgusher
	check 'removed, and stopped' not answers
	check 'the configuration stays' run test -s /etc/pgusher/pgusher.ini.rpmsave
	check 'programs and units are gone' not run sh -c 'ls /usr/bin/pgusher /usr/lib/systemd/system/pgusher* /usr/share/man/man1/pgusher*'
	check 'no unit has failed' [ -z "$(run systemctl list-units --failed --no-legend 'pgusher*')" ]
	root_halt "$root"
}

scene_drop_in() {
	machine drop-in
	check 'drop-in: install' run sh -c "rpm -i --nodeps $(package pgusher 1) $(package pgusher-pgbouncer 1)"
	check 'drop-in: it provides pgbouncer' run sh -c 'rpm -q --whatprovides pgbouncer | grep -q ^pgusher-pgbouncer-'
	run sh -c 'sed -i "s/^;app = /app = /" /etc/pgbouncer/pgbouncer.ini && echo "\"app\" \"secret\"" >>/etc/pgbouncer/userlist.txt'
	check 'drop-in: start' run sh -c 'systemctl start pgbouncer || { journalctl -q --no-pager -u pgbouncer; exit 1; }'
	check 'drop-in: psql through it' answers
	check 'drop-in: its name and user' run sh -c "grep -qx pgbouncer /proc/$(main_pid pgbouncer.service)/comm && [ \$(stat -c %U /proc/$(main_pid pgbouncer.service)) = pgbouncer ]"
	old=$(main_pid pgbouncer.service)
	check 'drop-in: upgrade' run sh -c "rpm -U --nodeps $(package pgusher 2) $(package pgusher-pgbouncer 2)"
	check 'drop-in: another process serves' [ "$(main_pid pgbouncer.service)" != "$old" ]
	check 'drop-in: psql through it' answers
	check 'drop-in: remove' run rpm -e --nodeps pgusher-pgbouncer pgusher
	check 'drop-in: removed, and stopped' not answers
	root_halt "$root"
}

root_begin
scene_begin
command -v rpmlint >/dev/null || root_die 'No rpmlint: apt-get install rpmlint'
make_packages
check 'rpmlint finds no error' rpmlint -r "$top/etc/rpm/pgusher.rpmlintrc" "$top/etc/rpm/pgusher.spec" "$rpms"/pgusher*-1.*.rpm
scene_pgusher
scene_drop_in
scene_end
