# SPDX-License-Identifier: ISC
# Debian machines for tests, in folders: a root is made by debootstrap, booted with systemd as pid 1
# of namespaces of its own, and removed. Sourced by scripts that root runs.
#
#   root_begin                     make a folder for roots; it and what runs in it end with the script
#   root_base PACKAGE...           make $root_base, an installed Debian with systemd and these packages
#   root_copy NAME                 copy it: sets $root to the new root
#   root_view NAME                 set $root to a new root that shows this machine's files, writes go to
#                                  memory; those below $root.files, which is empty yet, come on top
#   root_boot ROOT                 start systemd there, and wait until its jobs are done
#   root_run ROOT COMMAND...       run a command there, in the root's namespaces if it is booted
#   root_halt ROOT                 end everything in it
#
# A booted root has its own processes, mounts, host name, network (lo only, so that ports do not meet
# those of this machine), IPC and cgroup. Packages come from where this machine's apt has them, before
# a boot. PGUSHER_TEST_ROOT=FOLDER names a base root to copy, instead of debootstrap. A folder named by
# root_shared is the folder /srv of roots that boot.

root_suite=bookworm
root_words='systemd systemd-sysv dbus procps'

root_say() {
	printf '%s\n' "$*"
}

root_die() {
	printf '%s\n' "$*" >&2
	exit 1
}

root_begin() {
	[ "$(id -u)" -eq 0 ] || root_die 'Making a Debian root needs root'
	for program in debootstrap nsenter unshare ip; do
		command -v $program >/dev/null || root_die "No $program: apt-get install debootstrap util-linux iproute2"
	done
	# Not below the checkout, whose folders other users may not be able to enter.
	roots=$(mktemp -d /tmp/pgusher-roots.XXXXXX)
	chmod 755 "$roots"
	trap root_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

root_end() {
	trap '' INT TERM HUP
	for file in "$roots"/*.pid; do
		[ ! -e "$file" ] || root_halt "${file%.pid}"
	done
	if grep -q " $roots/" /proc/self/mounts; then
		root_say "Still mounted below $roots: not removed" >&2
	elif [ -n "${PGUSHER_TEST_KEEP:-}" ]; then
		root_say "Kept: $roots"
	else
		rm -rf --one-file-system "$roots"
	fi
}

# Where this machine gets Debian's packages: the first mirror that its apt knows for the suite.
root_mirror() {
	apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
		sed -n "s/ $root_suite\$//p" | head -n 1
}

# A program in a root that is not booted; what it starts ends with it. With $root_offline set it has a
# network of its own, with lo only.
root_chroot() {
	unshare --mount --pid --fork --kill-child ${root_offline:+--net} sh -c '
		mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" || exit 1
		ip link set lo up
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$0" "$@"' "$@"
}

root_base() {
	root_base=$roots/base
	log=$roots/base.log
	if [ -n "${PGUSHER_TEST_ROOT:-}" ]; then
		cp -a "$PGUSHER_TEST_ROOT" "$root_base"
	else
		# shellcheck disable=SC2046  # a mirror or nothing
		debootstrap --variant=minbase --include="$(echo $root_words | tr ' ' ,)" \
			$root_suite "$root_base" $(root_mirror) >"$log" 2>&1 || { tail -n 20 "$log" >&2; root_die 'debootstrap failed'; }
	fi
	rm -f "$root_base/etc/resolv.conf"
	cp -L /etc/resolv.conf /etc/hosts "$root_base/etc/"
	printf '#!/bin/sh\nexit 101\n' >"$root_base/usr/sbin/policy-rc.d"
	chmod 755 "$root_base/usr/sbin/policy-rc.d"
	[ $# -eq 0 ] || {
		root_chroot "$root_base" apt-get update &&
			root_chroot "$root_base" apt-get install -y --no-install-recommends "$@"
	} >>"$log" 2>&1 || { tail -n 20 "$log" >&2; root_die "Could not install $*"; }
	rm -f "$root_base/usr/sbin/policy-rc.d"
}

root_copy() {
	root=$roots/$1
	cp -a --reflink=auto "$root_base" "$root"
	echo "$1" >"$root/etc/hostname"
}

# Nothing of this machine starts there, and nothing changes the kernel's settings.
root_view() {
	root=$roots/$1
	mkdir -p "$root" "$root.upper" "$root.files/etc/systemd/system"
	echo "$1" >"$root.files/etc/hostname"
	ln -s /lib/systemd/system/basic.target "$root.files/etc/systemd/system/default.target"
	for unit in systemd-modules-load systemd-sysctl systemd-remount-fs systemd-random-seed; do
		ln -s /dev/null "$root.files/etc/systemd/system/$unit.service"
	done
}

# What becomes pid 1 of a root runs this first: $1 is the root, $2 the folder to share.
root_enter='
mount --make-rprivate / || exit 1
if [ -d "$1.upper" ]; then
	mount -t tmpfs -o mode=755 tmpfs "$1.upper" && mkdir "$1.upper/files" "$1.upper/work" &&
		cp -a "$1.files/." "$1.upper/files" &&
		mount -t overlay -o "lowerdir=/,upperdir=$1.upper/files,workdir=$1.upper/work" overlay "$1" || exit 1
else
	mount --bind "$1" "$1" || exit 1
fi
cd "$1" || exit 1
ip link set lo up
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
	touch dev/$name && mount --bind /dev/$name dev/$name
done
[ -z "$2" ] || mount --bind "$2" srv
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mkdir -p run/lock
exec env -i container=pgusher PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd \
	--log-target=console --show-status=no
'

# Run a command in a mount namespace that shows the unified cgroups at $1, wherever this machine has
# them, or not at all.
root_cgroups() {
	where=$1
	shift
	unshare --mount sh -c 'mount --make-rprivate / && mount -t cgroup2 cgroup2 "$0" && exec "$@"' "$where" "$@"
}

root_boot() {
	booted=$1
	mkdir -p "$booted.cgroups"
	# A cgroup of its own: two roots at the same time do not find the same slices. The process
	# enters it before the cgroup namespace, which makes it the root of what systemd sees.
	root_cgroups "$booted.cgroups" sh -c '
		group=$1/pgusher-root-$$ && mkdir "$group" && echo $$ >"$group/cgroup.procs" && echo $$ >"$2.pid" &&
		exec unshare --mount --uts --ipc --net --pid --cgroup --fork --kill-child sh -c "$3" enter "$2" "$4"
		' boot "$booted.cgroups" "$booted" "$root_enter" "${root_shared:-}" >"$booted.console" 2>&1 </dev/null &
	tries=100
	until root_run "$booted" systemctl is-system-running --wait >"$booted.state" 2>/dev/null ||
		grep -qx degraded "$booted.state"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { tail -n 20 "$booted.console" >&2; root_die "$booted does not boot"; }
		sleep 0.2
	done
}

# The pid, here, of the systemd of a root: the child of the process that unshare has become.
root_pid() {
	[ -s "$1.pid" ] && cat "/proc/$(cat "$1.pid")/task/$(cat "$1.pid")/children" 2>/dev/null
}

root_run() {
	at=$1
	shift
	if [ ! -e "$at.pid" ] && [ ! -e "$at.console" ]; then
		root_chroot "$at" "$@"
		return
	fi
	init=$(root_pid "$at") && [ -n "$init" ] || return 125
	# shellcheck disable=SC2086  # one pid and a blank
	nsenter --target $init --all --root --wd env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive "$@"
}

root_halt() {
	outer=$(cat "$1.pid" 2>/dev/null) || return 0
	init=$(root_pid "$1")
	# The kernel ends all processes of a pid namespace with its first one, and then its mounts.
	# shellcheck disable=SC2086
	[ -z "$init" ] || kill -s KILL $init 2>/dev/null
	while kill -s 0 "$outer" 2>/dev/null; do
		sleep 0.1
	done
	root_cgroups "$1.cgroups" find "$1.cgroups/pgusher-root-$outer" -depth -type d -exec rmdir '{}' + 2>/dev/null
	rm -f "$1.pid" "$1.console"
}
