#!/bin/sh
# SPDX-License-Identifier: ISC
# Makes the root file system of the container image by the steps of etc/container/Containerfile, and
# runs the image's entry point in it as an engine would: read-only, without a shell, as uid 12345, as
# the first process, and without any folder to write to. Root runs it; it takes some minutes.
# With PGUSHER_TEST_IMAGE=FOLDER, a root that image.py has made before is used.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/test/package/root.sh"

root_begin
if [ -n "${PGUSHER_TEST_IMAGE:-}" ]; then
	image=$PGUSHER_TEST_IMAGE
else
	root_base
	mkdir "$roots/stages" "$roots/context"
	# The context is what belongs to the tree, not what was built in it.
	(cd "$top" && tar -cf - --exclude=build --exclude=.git COPYRIGHT Makefile.am NEWS.md README.md \
		configure.ac src include etc doc test) | tar -xf - -C "$roots/context"
	/usr/bin/python3 "$top/test/package/image.py" "$root_base" "$top/etc/container/Containerfile" \
		"$roots/context" "$roots/stages" >"$roots/image.json" 2>"$roots/image.log" || {
		tail -n 30 "$roots/image.log" >&2
		root_die 'The steps of the Containerfile fail'
	}
	image=$(/usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["root"])' <"$roots/image.json")
fi
root_say "The image is $(du -sm "$image" | cut -f 1) MB"
PGUSHER_TEST_IMAGE=$image PGUSHER_TEST_PACKAGES=1 PGUSHER_BIN=$image/usr/bin/pgusher \
	/usr/bin/python3 -m pytest -q -p no:cacheprovider "$top/test/integration/test_image.py"
