#!/bin/sh
# SPDX-License-Identifier: ISC
# build.sh [FOLDER]: make the RPM packages in FOLDER, by default build/rpm of the tree. On Debian, where
# rpm cannot see what is installed, it installs what is missing itself. RELEASE=N is the number of the
# package, for a second one of a version.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/etc/build.sh"

nodeps=
if command -v dpkg-query >/dev/null; then
	need_packages $build_packages rpm
	nodeps=--nodeps
fi
mkdir -p "${1:-$top/build/rpm}"
result=$(cd "${1:-$top/build/rpm}" && pwd)

version=$(sed -n 's/^AC_INIT(\[pgusher\], \[\(.*\)\])$/\1/p' "$top/configure.ac")
# That which tools find is the one that the package provides.
pgbouncer=$(awk -F'"' '/^SETTING.compat_version,/ { print $2 }' "$top/include/config/settings.def")
[ -n "$version" ] && [ -n "$pgbouncer" ] || die 'no version in configure.ac, or no default of compat_version'

work=$result/work
rm -rf "$work"
mkdir -p "$work/SOURCES" "$work/pgusher-$version"
copy_sources "$work/pgusher-$version"
tar -czf "$work/SOURCES/pgusher-$version.tar.gz" -C "$work" "pgusher-$version"
rm -rf "$work/pgusher-$version"

log=$result/build.log
say "Building the RPM packages of pgusher $version in $result"
rpmbuild -bb $nodeps --define "_topdir $work" --define "_rpmdir $result" --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
	--define "pgusher_release ${RELEASE:-1}" --define "pgusher_version $version" --define "pgbouncer_version $pgbouncer" \
	"$top/etc/rpm/pgusher.spec" >"$log" 2>&1 || {
	tail -n 40 "$log" >&2
	die "The build failed; all it said is in $log"
}
rm -rf "$work"
ls "$result"/pgusher*-"$version-${RELEASE:-1}".*.rpm
