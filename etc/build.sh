# SPDX-License-Identifier: ISC
# What etc/quickstart.sh and test/run.sh share; sourced by them, with $top naming the tree.
# It installs what is missing, and builds below $top/build.

# Two of everything on small machines, as many as there are on large ones.
jobs=$(nproc 2>/dev/null || echo 2)

say() {
	printf '%s\n' "$*"
}

die() {
	printf '%s\n' "$*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# Install these Debian packages where they are missing. Elsewhere configure will tell what it lacks.
need_packages() {
	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
	missing=
	for package in "$@"; do
		case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
			*" installed") ;;
			*) missing="$missing $package" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
		die "Missing packages, and no way to install them. As root: apt-get install$missing"
	fi
	say "Installing$missing"
	own_cluster no
	log=$(mktemp)
	# shellcheck disable=SC2086  # a list of words
	if ! { as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
		cat "$log" >&2
		rm -f "$log"
		own_cluster yes
		die "Could not install$missing"
	fi
	rm -f "$log"
	own_cluster yes
}

# Whether installing PostgreSQL also makes and starts a cluster, as Debian's packages do. We bring
# our own, and the machine's owner asked for none.
own_cluster() {
	folder=/etc/postgresql-common/createcluster.d
	case $missing$1 in
		*postgresql*no)
			as_root mkdir -p $folder
			echo 'create_main_cluster = false' | as_root tee $folder/pgusher.conf >/dev/null
			;;
		*postgresql*yes) as_root rm -f $folder/pgusher.conf ;;
	esac
	own_services "$1"
}

# The same for slapd, Prometheus and PgBouncer: no directory is set up, and none of them starts, unless the
# owner has configured them.
own_services() {
	policy=/usr/sbin/policy-rc.d
	case $missing$1 in
		*slapd*no) echo 'slapd slapd/no_configuration boolean true' | as_root debconf-set-selections ;;
	esac
	case $missing$1 in
		*slapd*no | *prometheus*no | *pgbouncer*no)
			[ ! -e $policy ] || return 0
			printf '#!/bin/sh\n# pgusher\nexit 101\n' | as_root tee $policy >/dev/null
			as_root chmod 755 $policy
			;;
		*slapd*yes | *prometheus*yes | *pgbouncer*yes) ! grep -qs '^# pgusher$' $policy || as_root rm -f $policy ;;
	esac
}

build_packages="build-essential autoconf automake pkg-config libevent-dev libssl-dev
	libc-ares-dev libidn-dev libbsd-dev libpcre2-dev uthash-dev libldap-dev libpam0g-dev libsystemd-dev
	libpq-dev libncurses-dev pandoc"
postgres_packages="postgresql postgresql-contrib"

# copy_sources FOLDER: copy what a release has of the tree.
copy_sources() {
	(cd "$top" && tar -cf - --exclude='*.o' --exclude='*.a' --exclude=.deps \
		.ci .clang-format .clang-tidy .editorconfig .gitignore \
		COPYRIGHT Makefile.am NEWS.md README.md configure.ac src include etc doc test) |
		tar -xf - -C "$1"
}

# Make configure where it is missing; make itself keeps it in step with what it is made from.
prepare_sources() {
	sources=$top
	if [ -f "$top/config.status" ]; then
		# Configured in place: automake refuses a second build from there, so build from a copy.
		sources=$top/build/sources
		mkdir -p "$sources"
		(cd "$sources" && rm -rf src include etc doc test)
		copy_sources "$sources"
	fi
	for made in configure Makefile.in build-aux/tap-driver.sh; do
		[ -f "$sources/$made" ] || { (cd "$sources" && autoreconf -fi) && break; } || return 1
	done
}

# build_in NAME [CONFIGURE OPTION...]: configure, if need be, and make $top/build/NAME.
build_in() {
	name=$1
	shift
	mkdir -p "$top/build/$name" || return 1
	(
		cd "$top/build/$name" || exit 1
		if [ ! -f config.status ] || [ "$(cat options 2>/dev/null)" != "$sources $*" ]; then
			"$sources/configure" --quiet "$@" && echo "$sources $*" >options || exit 1
		fi
		make --no-print-directory -j"$jobs" || exit 1
	)
}

# The folder of PostgreSQL's programs: as named by PGUSHER_TEST_PGBIN, or Debian's newest.
find_postgres() {
	if [ -n "${PGUSHER_TEST_PGBIN:-}" ]; then
		pgbin=$PGUSHER_TEST_PGBIN
	else
		pgbin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null |
			sort -t/ -k5 -n | tail -n 1)
	fi
	[ -x "$pgbin/initdb" ] && [ -x "$pgbin/postgres" ] ||
		die "No PostgreSQL programs in '$pgbin'; name their folder in PGUSHER_TEST_PGBIN"
}
