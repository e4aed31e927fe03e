#!/bin/sh
# SPDX-License-Identifier: ISC
# build.sh RESULT MANUAL5 VERSION: make the site of pages.list in the folder RESULT, by pandoc. MANUAL5
# is the finished text of pgusher(5). `make html` runs this.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
result=$1 manual5=$2 version=$3
list=$here/pages.list
pandoc=${PANDOC:-pandoc}

die() {
	printf '%s\n' "$*" >&2
	exit 1
}

# The name of a page's file in the site.
page_of() {
	case $1 in
		README.md) echo index.html ;;
		NEWS.md) echo news.html ;;
		*) basename "$1" .md | sed 's/$/.html/' ;;
	esac
}

# What HTML has other meanings for.
escaped() {
	printf '%s' "$1" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'
}

for path in "$top"/doc/*.md; do
	grep -q "^doc/${path##*/} ." "$list" || die "pages.list lacks doc/${path##*/}"
done

mkdir -p "$result/images"
work=$(mktemp -d "${TMPDIR:-/tmp}/pgusher-html.XXXXXX")
trap 'rm -rf "$work"' EXIT

{
	open=
	grep -v '^#' "$list" | while read -r file title; do
		if [ "$file" = section ]; then
			printf '%s<h2>%s</h2>\n<ul>\n' "$open" "$(escaped "$title")"
			open='</ul>
'
		else
			printf '<li><a href="%s">%s</a></li>\n' "$(page_of "$file")" "$(escaped "$title")"
		fi
	done
	printf '</ul>\n'
} >"$work/navigation"

# A page: its format and options are those of a document or of a manual page.
make_page() {
	page=$(page_of "$1")
	sed "s|<a href=\"$page\">|<a href=\"$page\" aria-current=\"page\">|" "$work/navigation" >"$work/this"
	source=$top/$1 format=gfm-raw_html options=
	case $1 in
		doc/*.[1-9].md)
			[ "$1" != doc/pgusher.5.md ] || source=$manual5
			format=markdown-smart-citations+gfm_auto_identifiers
			options='--shift-heading-level-by=1 --toc --toc-depth=2 --variable=manual:yes'
			;;
	esac
	# shellcheck disable=SC2086  # a list of words
	"$pandoc" --from="$format" --to=html5 --template="$here/template.html" --no-highlight \
		--columns=10000 --wrap=none --lua-filter="$here/page.lua" $options \
		--metadata=pagetitle:"$2" --metadata=lang:en --variable=version:"$version" \
		--include-before-body="$work/this" --output="$work/page" "$source"
	mv "$work/page" "$result/$page"
}

grep -v -e '^#' -e '^section ' "$list" >"$work/pages"
while read -r file title; do
	[ -f "$top/$file" ] || die "pages.list has $file, which does not exist"
	make_page "$file" "$title"
done <"$work/pages"

cp "$here/site.css" "$result/site.css"
cp "$top/COPYRIGHT" "$result/COPYRIGHT.txt"
for image in "$top"/doc/images/*.png; do
	[ ! -f "$image" ] || cp "$image" "$result/images/"
done
