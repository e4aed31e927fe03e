#!/bin/sh
# SPDX-License-Identifier: ISC
# made.sh TMP: what the packages have of the samples in etc/, with the paths of Debian. Run by debian/rules in
# the folder of the sources. A change below that finds nothing to change ends with an error, so that
# the samples and the packages stay in step.
set -eu
tmp=$1

# edit SAMPLE RESULT EXPRESSION...: copy a file, and apply each expression of sed to it.
edit() {
	from=$1 result=$2
	shift 2
	mkdir -p "$(dirname "$result")"
	cp "$from" "$result"
	for expression in "$@"; do
		sed "$expression" "$result" >"$result.new"
		if cmp -s "$result" "$result.new"; then
			echo "made.sh: $from: nothing for $expression" >&2
			exit 1
		fi
		mv "$result.new" "$result"
	done
}

# setting NAME VALUE: the expression that gives a setting of the sample this value.
setting() {
	printf 's|^;*%s =.*|%s = %s|' "$1" "$1" "$2"
}

# The configuration of pgusher: users with a password in the PostgreSQL of this machine may log in.
edit etc/pgusher.ini "$tmp/etc/pgusher/pgusher.ini" \
	"/^;app = /i\\
; Remove the ; from the next line, and clients may connect to the database app of this machine." \
	"/^;\* = /a\\
\\
; Used for no client: through it pgusher, as the system user postgres, looks up the secrets of those that\\
; log in (auth_dbname below). For a server elsewhere remove it, auth_dbname and auth_user, and write\\
; the users to auth_file.\\
pgusher_lookup = host=/run/postgresql dbname=postgres" \
	"$(setting listen_addr localhost)" \
	'/^;unix_socket_dir =/i\
; The service has /run/postgresql, unless a line says otherwise.' \
	'/^;pidfile =/i\
; The service has /run/pgusher/pgusher.pid, unless a line says otherwise.' \
	"$(setting auth_file /etc/pgusher/userlist.txt)" \
	"$(setting auth_user postgres)" \
	"$(setting auth_dbname pgusher_lookup)" \
	"$(setting logfile /var/log/pgusher/pgusher.log)"
edit etc/userlist.txt "$tmp/etc/pgusher/userlist.txt"

# In the place of PgBouncer: what Debian's package has set.
edit etc/pgusher.ini "$tmp/usr/share/pgusher/pgbouncer.ini" \
	's|pgusher: sample configuration|pgusher in the place of PgBouncer: sample configuration|' \
	's|/etc/pgusher/pgusher.ini|/etc/pgbouncer/pgbouncer.ini|' \
	"$(setting listen_addr localhost)" \
	"$(setting unix_socket_dir /var/run/postgresql)" \
	"$(setting auth_type md5)" \
	"$(setting auth_file /etc/pgbouncer/userlist.txt)" \
	's|^admin_users =|;&|' \
	"$(setting logfile /var/log/postgresql/pgbouncer.log)" \
	"$(setting pidfile /var/run/postgresql/pgbouncer.pid)"

# The units. The presets of the service are those of debian/pgusher.init.
presets='--preset=unix_socket_dir=/run/postgresql --preset=pidfile=/run/pgusher/pgusher.pid'
copied='s|^\(# .*\.\) Copy it to /etc/systemd/system.*|\1 Change it by: systemctl edit pgusher|'
edit etc/pgusher.service debian/pgusher.service "$copied" \
	"s|--preset=unix_socket_dir=/run/pgusher |$presets \$OPTS |" \
	'/^ExecStart=/i\
Environment=OPTS=\
EnvironmentFile=-/etc/default/pgusher' \
	'/^LogsDirectory=/a\
# The Unix socket is where clients look for it.\
ReadWritePaths=-/run/postgresql'
if [ -e etc/pgusher@.service ]; then
	edit etc/pgusher@.service debian/pgusher@.service \
		'/^EnvironmentFile=/i\
EnvironmentFile=-/etc/default/pgusher'
fi
edit etc/pgusher.socket debian/pgusher.socket
edit debian/pgbouncer.service.conf "$tmp/lib/systemd/system/pgbouncer.service.d/50-pgusher.conf"

# The unit as pgbouncer.service. The unit that it replaces hides nothing of the file system.
in_place() {
	sed -n "s|^$1=/usr/bin/pgusher|$1=/usr/sbin/pgbouncer|p" etc/pgusher.service |
		sed 's| --preset=unix_socket_dir=[^ ]*||; s| /etc/pgusher/pgusher.ini$| /etc/pgbouncer/pgbouncer.ini|'
}
cat >"$tmp/usr/share/pgusher/pgbouncer.conf" <<END
# The service of pgusher in the place of PgBouncer: PgBouncer's files and its way to stop.
[Unit]
Description=pgusher in the place of PgBouncer, connection pooler for PostgreSQL

[Service]
EnvironmentFile=
ExecStart=
$(in_place ExecStart)
ExecReload=
$(in_place ExecReload)
ExecStop=
KillSignal=SIGINT
# A configuration made for PgBouncer may have its sockets in /tmp, its log and its keys anywhere.
PrivateTmp=no
ProtectHome=read-only
ProtectSystem=full
ReadWritePaths=
END
test "$(grep -c '^ExecStart=/usr/sbin/pgbouncer .* /etc/pgbouncer/pgbouncer.ini$' "$tmp/usr/share/pgusher/pgbouncer.conf")" = 1

edit etc/pgusher.logrotate debian/pgusher.logrotate \
	's|^\(# Rotation.*\) Copy it to.*|\1|' \
	'/^# to logfile, pidfile and user/d' \
	's|^\(\t\t\)kill -HUP|\1[ ! -s /run/pgusher/pgusher.pid ] \|\| kill -HUP|'
edit etc/pgusher.bash-completion "$tmp/usr/share/bash-completion/completions/pgusher" \
	's|^\(# Completion.*\): copy it to$|\1.|' \
	's|^# /usr/share/bash-completion/completions/pgusher. It|# It|'
install -m 755 etc/mkauth.py "$tmp/usr/share/pgusher/mkauth.py"
