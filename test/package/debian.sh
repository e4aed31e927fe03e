#!/bin/sh
# SPDX-License-Identifier: ISC
# debian.sh [SCENE...]: build the Debian packages, check them by lintian, and install, upgrade and remove
# them in fresh Debian roots with systemd (root.sh). Runs the commands of doc/install-debian.md and
# doc/upgrading.md. By default all scenes; each is a function scene_NAME below. For root; minutes, most of
# them for packages.
#   PGUSHER_TEST_ROOT=FOLDER    a base root of debootstrap to copy, instead of making one
#   PGUSHER_TEST_DEBS=FOLDER    packages that are built already
#   PGUSHER_TEST_BEFORE=FOLDER  packages of the version before; by default those of this one with
#                               another version number
#   PGUSHER_TEST_KEEP=1         keep the roots
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/test/package/root.sh"
. "$top/test/package/scene.sh"

# What the packages depend on, and what the tests use: roots that are booted have no network.
packages='postgresql-15 libc-ares2 libevent-2.1-7 libevent-extra-2.1-7 libidn12 libpcre2-8-0 libssl3 libldap-2.5-0 libncursesw6 libpam0g libpq5
	postgresql-common logrotate python3-minimal pgbouncer'

make_packages() {
	debs=$roots/debs
	before=$roots/before
	mkdir "$debs" "$before"
	if [ -n "${PGUSHER_TEST_DEBS:-}" ]; then
		cp "$PGUSHER_TEST_DEBS"/pgusher*.deb "$debs/"
	else
		commands install-debian.md 'Make the packages' >"$roots/make.sh"
		(cd "$top" && sh -e "$roots/make.sh") || root_die 'The packages cannot be made'
		cp "$top"/build/deb/pgusher*.deb "$debs/"
	fi
	if [ -n "${PGUSHER_TEST_BEFORE:-}" ]; then
		cp "$PGUSHER_TEST_BEFORE"/pgusher*.deb "$before/"
	else
		for deb in "$debs"/pgusher_*.deb "$debs"/pgusher-pgbouncer_*.deb; do
			dpkg-deb -R "$deb" "$roots/unpacked"
			sed -i 's/^Version: .*/&~before/' "$roots/unpacked/DEBIAN/control"
			dpkg-deb --root-owner-group -b "$roots/unpacked" "$before" >/dev/null
			rm -rf "$roots/unpacked"
		done
	fi
}

# machine NAME [FOLDER]: boot a copy of the base with packages in /srv/build/deb, and PostgreSQL running.
machine() {
	root_copy "$1"
	mkdir -p "$root/srv/build/deb"
	cp "${2:-$debs}"/pgusher*.deb "$root/srv/build/deb/"
	root_boot "$root"
	wait_for run su postgres -c 'psql -Atqc "SELECT 1"' || root_die 'PostgreSQL does not start'
}

database() {
	run su postgres -c "psql -qc \"CREATE ROLE app LOGIN PASSWORD 'secret'\" -c 'CREATE DATABASE app OWNER app'"
	run su postgres -c 'pgbench -i -q app' >/dev/null 2>&1
	run su postgres -c "psql -q app -c 'ALTER TABLE pgbench_accounts OWNER TO app' -c 'ALTER TABLE pgbench_branches OWNER TO app' \
		-c 'ALTER TABLE pgbench_tellers OWNER TO app' -c 'ALTER TABLE pgbench_history OWNER TO app'"
}

through='postgresql://app:secret@localhost:6432/app'
answers() {
	[ "$(run psql -Atqc 'SELECT 42' "$through")" = 42 ]
}

# bench_begin [OPTION...]: 20 clients of pgbench through port 6432, until something has been done.
bench_begin() {
	(run pgbench -n -c 20 -j 2 -T 10 -P 1 "$@" "$through" >"$root.bench" 2>&1; echo $? >"$root.bench.status") &
	bench=$!
	wait_for grep -q '^progress' "$root.bench"
}

# bench_end NAME: all clients are there to the end, and no transaction has failed.
bench_end() {
	wait $bench
	say_figures "$1" "$(sed -n 's/^number of transactions actually processed: //p; s/^number of failed transactions: /failed: /p' "$root.bench" |
		paste -sd' '), longest second: $(sed -n 's/^progress: .* \([0-9.]*\) tps.*/\1/p' "$root.bench" | sort -n | head -n 1) tps"
	check "$1: pgbench ends well" grep -qx 0 "$root.bench.status"
	check "$1: no transaction failed" grep -q '^number of failed transactions: 0 ' "$root.bench"
	check "$1: no client was cut" not grep -qE 'aborted|terminated|closed the connection' "$root.bench"
}

main_pid() {
	run systemctl show --property=MainPID --value "${1:-pgusher.service}"
}

# The kernel tells names of files that another has replaced with `(deleted)` behind them.
program_is_new() {
	run sh -c "readlink /proc/$(main_pid)/exe | grep -q '/usr/bin/pgusher\$'"
}

# files LIST: names, modes and owners of what packages bring and leave; not what running systems do.
files() {
	run find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /root -o -path /srv -o -path /var/cache \
		-o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/postgresql -o -path /var/log \
		-o -path /var/lib/systemd -o -path /var/lib/logrotate \) -prune -o ! -name '*.log' ! -name '__pycache__' ! -name '*.pyc' -printf '%p %M %u:%g\n' | sort >"$1"
	run find /var/log -maxdepth 1 -name 'pgusher*' >>"$1"
	run find /var/lib/systemd/deb-systemd-helper-enabled /etc/systemd /etc/rc0.d /etc/rc2.d -name '*pgusher*' >>"$1"
}

install_page() {
	commands install-debian.md "$1" | sed '1i cd /srv' | run sh -e
}

upgrade_page() {
	commands upgrading.md "$1" | sed '1i cd /srv/build/deb' | run sh -e
}

# --- Scenes ----------------------------------------------------------------------------------

scene_fresh() {
	machine fresh
	files "$root.files"
	begun=$(date +%s%N)
	check 'fresh: install' install_page 'Install'
	check 'fresh: it is enabled, and does not run yet' run sh -c 'systemctl -q is-enabled pgusher && ! systemctl -q is-active pgusher'
	check 'fresh: a database' install_page 'A database'
	check 'fresh: edit one line' install_page 'Edit one line'
	install_page 'Start' >"$root.out" 2>&1
	check 'fresh: start, and psql through it, as the page says' [ $? -eq 0 ]
	say_figures 'fresh' "the commands of doc/install-debian.md from install to psql: $((($(date +%s%N) - begun) / 1000000)) ms"
	check 'fresh: psql got its row' grep -q '^(1 row)' "$root.out"
	check 'fresh: the console answers' grep -q 'sv_active' "$root.out"
	check 'fresh: a wrong password is refused' not run psql -Atqc 'SELECT 1' 'postgresql://app:wrong@localhost:6432/app'
	check 'fresh: psql finds the Unix socket' run env PGPASSWORD=secret psql -p 6432 -U app -Atqc 'SELECT 1' app
	check 'fresh: rights of the configuration' run sh -c \
		'[ "$(stat -c "%U:%G %a" /etc/pgusher/pgusher.ini /etc/pgusher/userlist.txt | uniq)" = "postgres:postgres 640" ]'
	check 'fresh: logrotate accepts its file' run logrotate -d /etc/logrotate.d/pgusher
	check 'fresh: after a rotation the log goes on' run sh -c \
		'logrotate -f /etc/logrotate.d/pgusher && psql -Atqc "SELECT 1" '"$through"' && [ -s /var/log/pgusher/pgusher.log.1 ] && [ -s /var/log/pgusher/pgusher.log ]'
	run sh -c 'echo ";mine" >>/etc/pgusher/pgusher.ini'
	check 'fresh: remove' run apt-get remove -y pgusher
	check 'fresh: removed, and stopped' not answers
	check 'fresh: the configuration stays' run grep -qx ';mine' /etc/pgusher/pgusher.ini
	check 'fresh: install again' run sh -c 'cd /srv/build/deb && dpkg -i ./pgusher_*.deb'
	check 'fresh: the configuration has stayed' run grep -qx ';mine' /etc/pgusher/pgusher.ini
	run systemctl start pgusher
	check 'fresh: it works again' answers
	check 'fresh: purge' install_page 'Remove'
	files "$root.after"
	check 'fresh: nothing is left' cmp "$root.files" "$root.after"
	diff "$root.files" "$root.after" | head -n 20
	check 'fresh: no unit has failed' [ -z "$(run systemctl list-units --failed --no-legend)" ]
	root_halt "$root"
}

# Debian's pgbouncer, with a configuration in use.
debian_pgbouncer() {
	machine "$1" "${2:-$debs}"
	database
	run sh -c 'cd /srv && apt-get install -y ./pgbouncer_*.deb' >"$root.apt" 2>&1 || root_die 'No pgbouncer'
	run sh -c 'sed -i "s/^\[databases\]/&\napp = host=127.0.0.1 port=5432/; s/^;*pool_mode = .*/pool_mode = transaction/
		s/^;*default_pool_size = .*/default_pool_size = 8/" /etc/pgbouncer/pgbouncer.ini
		echo ";mine" >>/etc/pgbouncer/pgbouncer.ini
		echo "\"app\" \"secret\"" >/etc/pgbouncer/userlist.txt
		systemctl restart pgbouncer'
	wait_for answers || root_die 'PgBouncer does not work'
}

replaced() {
	check "$1: the answer is pgusher's" run sh -c \
		'su postgres -c "psql -p 6432 -U pgbouncer pgbouncer -Atc \"SHOW VERSION\"" | grep -q pgusher'
	check "$1: the configuration is that of before" run sh -c 'grep -qx ";mine" /etc/pgbouncer/pgbouncer.ini && grep -q secret /etc/pgbouncer/userlist.txt'
	check "$1: it is called pgbouncer" run sh -c "[ \"\$(cat /proc/$(main_pid)/comm)\" = pgbouncer ]"
	check "$1: pgbouncer.service is active and enabled" run sh -c 'systemctl -q is-active pgbouncer.service && systemctl -q is-enabled pgusher.service'
	check "$1: its names" run sh -c 'pgbouncer -V && /usr/bin/pgbouncer -V && test -x /usr/share/pgbouncer/mkauth.py && test -e /usr/share/man/man1/pgbouncer.1.gz'
	check "$1: dpkg is content" [ -z "$(run dpkg --audit)" ]
}

scene_pgbouncer() {
	for way in apt dpkg; do
		debian_pgbouncer "pgbouncer-$way"
		old=$(main_pid pgbouncer.service)
		bench_begin
		if [ $way = apt ]; then
			upgrade_page "From Debian's pgbouncer" >"$root.apt" 2>&1
			check 'apt: install' [ $? -eq 0 ]
		else
			check 'dpkg: pgusher beside PgBouncer' run sh -c 'cd /srv/build/deb && dpkg -i ./pgusher_*.deb'
			check 'dpkg: PgBouncer goes on' [ "$(main_pid pgbouncer.service)" = "$old" ]
			run sh -c 'cd /srv/build/deb && dpkg -i ./pgusher-pgbouncer_*.deb' >"$root.apt" 2>&1 </dev/null
			check 'dpkg: install' [ $? -eq 0 ]
		fi
		bench_end "from pgbouncer by $way"
		check "$way: PgBouncer has ended" not run kill -s 0 "$old"
		replaced "$way"
		check "$way: its configuration outlives the purge of pgbouncer" run sh -c 'dpkg --purge pgbouncer && grep -qx ";mine" /etc/pgbouncer/pgbouncer.ini'
		run systemctl restart pgbouncer
		wait_for answers
		replaced "$way, restarted"
		root_halt "$root"
	done
}

# Back to PgBouncer, and a purge of all.
scene_back() {
	debian_pgbouncer back
	files "$root.files"
	check 'back: install pgusher' run sh -c 'cd /srv/build/deb && apt-get install -y ./pgusher_*.deb'
	check 'back: a stop of PgBouncer is a stop' run systemctl stop pgbouncer
	check 'back: pgusher stays out of that' not run systemctl -q is-active pgusher.service
	run systemctl start pgbouncer
	check 'back: a removal of PgBouncer is a removal' run apt-get remove -y pgbouncer
	check 'back: pgusher stays out of that, too' not run systemctl -q is-active pgusher.service
	run sh -c 'cd /srv && dpkg -i ./pgbouncer_*.deb'
	run sh -c 'cd /srv/build/deb && apt-get install -y ./pgusher-pgbouncer_*.deb' >"$root.apt" 2>&1
	check 'back: install pgusher-pgbouncer' [ $? -eq 0 ]
	run sh -c 'cp /srv/pgbouncer_*.deb /var/cache/apt/archives/'
	upgrade_page 'Back' >"$root.apt" 2>&1
	check 'back: install pgbouncer' [ $? -eq 0 ]
	wait_for answers
	check 'back: PgBouncer answers' run sh -c 'readlink -f /proc/$(systemctl show --property=MainPID --value pgbouncer.service)/exe | grep -qx /usr/sbin/pgbouncer'
	check 'back: the configuration is that of before' run grep -qx ';mine' /etc/pgbouncer/pgbouncer.ini
	check 'back: pgusher is disabled' not run systemctl -q is-enabled pgusher.service
	run apt-get purge -y pgusher pgusher-pgbouncer >"$root.apt" 2>&1
	check 'back: purge' [ $? -eq 0 ]
	check 'back: PgBouncer still works' answers
	check 'back: the configuration is still that of before' run grep -qx ';mine' /etc/pgbouncer/pgbouncer.ini
	files "$root.after"
	check 'back: nothing is left' cmp "$root.files" "$root.after"
	diff "$root.files" "$root.after" | head -n 20
	root_halt "$root"
}

# The drop-in package on a machine without PgBouncer.
scene_drop_in() {
	machine drop-in
	files "$root.files"
	run sh -c 'cd /srv/build/deb && apt-get install -y ./pgusher_*.deb ./pgusher-pgbouncer_*.deb' >"$root.apt" 2>&1
	check 'drop-in: install' [ $? -eq 0 ]
	check 'drop-in: the service runs, as that of pgbouncer does' run systemctl -q is-active pgbouncer.service
	check 'drop-in: rights of the configuration' run sh -c \
		'[ "$(stat -c "%U:%G %a" /etc/pgbouncer/pgbouncer.ini /etc/pgbouncer/userlist.txt | uniq)" = "postgres:postgres 640" ]'
	check 'drop-in: it provides pgbouncer' run sh -c 'dpkg-query -W -f="\${Provides}" pgusher-pgbouncer | grep -q "^pgbouncer (= 1\.[0-9.]*)$"'
	check 'drop-in: mkauth.py' run sh -c "su postgres -c \"psql -qc \\\"CREATE ROLE app LOGIN PASSWORD 'secret'\\\"\"; su postgres -c \"/usr/share/pgbouncer/mkauth.py - dbname=postgres\" | grep -q '^\"app\" \"SCRAM'"
	check 'drop-in: purge' run apt-get purge -y pgusher pgusher-pgbouncer
	files "$root.after"
	check 'drop-in: nothing is left' cmp "$root.files" "$root.after"
	diff "$root.files" "$root.after" | head -n 20
	root_halt "$root"
}

# started NAME: the version before, at work; its commands are those of the page.
started() {
	machine "$1" "$before"
	for part in Install 'A database' 'Edit one line' Start; do
		install_page "$part" >"$root.out" 2>&1 || root_die "$part fails"
	done
	run su postgres -c 'pgbench -i -q app' >/dev/null 2>&1
	run su postgres -c "psql -q app -c 'REASSIGN OWNED BY postgres TO app'" >/dev/null 2>&1 ||
		run su postgres -c "psql -q app -c 'GRANT ALL ON ALL TABLES IN SCHEMA public TO app'"
	run sh -c 'sed -i "s/^;*pool_mode = .*/pool_mode = transaction/; s/^;*default_pool_size = .*/default_pool_size = 8/" /etc/pgusher/pgusher.ini
		echo ";mine" >>/etc/pgusher/pgusher.ini; systemctl reload pgusher'
	run sh -c 'rm /srv/build/deb/*'
	cp "$debs"/pgusher*.deb "$root/srv/build/deb/"
}

scene_upgrade() {
	started upgrade
	old=$(main_pid)
	bench_begin -M extended
	upgrade_page 'To a new version' >"$root.apt" 2>&1
	check 'upgrade: install' [ $? -eq 0 ]
	check 'upgrade: another process serves' [ "$(main_pid)" != "$old" ]
	bench_end 'upgrade'
	check 'upgrade: the old process has ended' not run kill -s 0 "$old"
	check 'upgrade: the program is the new one' program_is_new
	check 'upgrade: the service is active' run systemctl -q is-active pgusher.service
	check 'upgrade: the configuration is that of before' run grep -qx ';mine' /etc/pgusher/pgusher.ini
	check 'upgrade: no word of trouble' not grep -q '^pgusher: ' "$root.apt"
	# And back, with statements that have names; pgbench 15 prepares them one client after another, so
	# each client needs a server.
	cp "$before"/pgusher*.deb "$root/srv/"
	old=$(main_pid)
	bench_begin -M prepared -c 8
	run sh -c 'cd /srv && dpkg -i ./pgusher_*.deb' >"$root.apt" 2>&1
	check 'back to the version before: install' [ $? -eq 0 ]
	check 'back to the version before: another process serves' [ "$(main_pid)" != "$old" ]
	bench_end 'back to the version before'
	root_halt "$root"
}

scene_broken() {
	started broken
	old=$(main_pid)
	run sh -c 'echo "pool_mode = nonsense" >>/etc/pgusher/pgusher.ini'
	bench_begin
	run sh -c 'cd /srv/build/deb && dpkg -i ./pgusher_*.deb' >"$root.apt" 2>&1
	check 'broken: the installation ends well' [ $? -eq 0 ]
	check 'broken: it says so in one line' [ "$(grep -c '^pgusher: ' "$root.apt")" = 1 ]
	check 'broken: the old process goes on' [ "$(main_pid)" = "$old" ]
	bench_end 'broken'
	check 'broken: dpkg is content' [ -z "$(run dpkg --audit)" ]
	run sed -i '/nonsense/d' /etc/pgusher/pgusher.ini
	check 'broken: corrected, a reload changes over' upgrade_page 'A configuration with mistakes'
	check 'broken: to the new program' [ "$(main_pid)" != "$old" ]
	check 'broken: which works' answers
	root_halt "$root"
}

# No systemd: a chroot of an image build, where policy-rc.d forbids to start anything, and a machine
# with scripts in /etc/init.d.
scene_no_systemd() {
	root_copy no-systemd
	cp "$debs"/pgusher*.deb "$root/srv/"
	mkdir "$root/srv/before"
	cp "$before"/pgusher*.deb "$root/srv/before/"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	check 'no systemd: install where nothing may start' run sh -c \
		'cd /srv && dpkg -i before/pgusher_*.deb && dpkg -i pgusher-pgbouncer_*.deb && ! pgrep pgusher && ! pgrep pgbouncer'
	check 'no systemd: purge' run dpkg --purge pgusher-pgbouncer pgusher
	rm "$root/usr/sbin/policy-rc.d"
	cp "$top/test/package/no-systemd.sh" "$root/srv/"
	commands upgrading.md 'Without systemd' >"$root/srv/without-systemd.sh"
	(root_offline=yes && run sh /srv/no-systemd.sh "$through") >"$root.out" 2>&1
	check 'no systemd: start, upgrade online, stop by /etc/init.d' [ $? -eq 0 ]
	grep -qx 'all done' "$root.out" || tail -n 30 "$root.out"
	say_figures 'no systemd' "$(sed -n 's/^number of transactions actually processed: //p; s/^number of failed transactions: /failed: /p' "$root.out" | paste -sd' ')"
	rm -rf "$root"
}

[ $# -gt 0 ] || set -- fresh drop_in pgbouncer back upgrade broken no_systemd
root_begin
scene_begin
command -v lintian >/dev/null || root_die 'No lintian: apt-get install lintian'
# shellcheck disable=SC2086  # a list of words
root_base $packages
root_chroot "$root_base" sh -c 'cd /srv && apt-get download pgbouncer && apt-get purge -y pgbouncer' >>"$roots/base.log" 2>&1 ||
	root_die 'No package pgbouncer'
make_packages
check 'there is a package of symbols' test -e "$debs"/pgusher-dbgsym_*.deb
check 'lintian finds no error' lintian --fail-on error "$debs"/*.deb
for scene in "$@"; do
	"scene_$scene"
done
scene_end
