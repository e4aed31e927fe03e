#!/bin/sh
# SPDX-License-Identifier: ISC
# Writes C that has these files as arrays of bytes, by tools that every POSIX system has:
# embed.sh FILE... >page_files.c
set -e

echo '/* Made by src/admin/page/embed.sh. */'
echo '#include "admin/page/page_files.h"'
number=0
for file in "$@"; do
	echo "static const unsigned char bytes_$number[] = {"
	od -A n -v -t u1 "$file" | sed 's/\([0-9][0-9]*\)/\1,/g'
	echo '};'
	number=$((number + 1))
done
echo 'const struct page_file page_files[] = {'
number=0
for file in "$@"; do
	echo "{\"${file##*/}\", bytes_$number, sizeof(bytes_$number)},"
	number=$((number + 1))
done
echo '{0}};'
