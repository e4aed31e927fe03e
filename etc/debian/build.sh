#!/bin/sh
# SPDX-License-Identifier: ISC
# build.sh [FOLDER]: make the Debian packages in FOLDER, by default build/deb of the tree. It installs
# what is missing for that.
# DEB_BUILD_OPTIONS without nocheck runs the unit tests of the package build, too.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/etc/build.sh"

need_packages $build_packages debhelper dpkg-dev fakeroot
mkdir -p "${1:-$top/build/deb}"
result=$(cd "${1:-$top/build/deb}" && pwd)

version=$(sed -n 's/^AC_INIT(\[pgusher\], \[\(.*\)\])$/\1/p' "$top/configure.ac")
[ -n "$version" ] || die 'configure.ac has no version'
stage=$result/pgusher-$version
rm -rf "$stage"
mkdir "$stage"
copy_sources "$stage"
cp -R "$top/etc/debian" "$stage/debian"

# The version is that of configure.ac, the time that of the news.
changed=$(stat -c %Y "$top/NEWS.md")
[ ! -e "$top/.git" ] || changed=$(git -C "$top" log -1 --format=%ct 2>/dev/null) || :
cat >"$stage/debian/changelog" <<END
pgusher ($version) unstable; urgency=medium

  * Version $version: see NEWS.md.

 -- $(sed -n 's/^Maintainer: //p' "$top/etc/debian/control")  $(date -u -R -d "@$changed")
END

log=$result/build.log
say "Building the Debian packages of pgusher $version in $result"
(
	cd "$stage"
	DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck parallel=$jobs} dpkg-buildpackage -b -us -uc
) >"$log" 2>&1 || {
	tail -n 40 "$log" >&2
	die "The build failed; all it said is in $log"
}
rm -rf "$stage"
rm -f "$result"/pgusher_"$version"_*.changes "$result"/pgusher_"$version"_*.buildinfo
ls "$result"/pgusher*_"$version"_*.deb
