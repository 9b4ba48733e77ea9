#!/bin/bash
# embed_files.sh FOLDER INTO: index.html, page.css, icon.svg and page.js as texts of C, and HD_PAGE_FILES, a
# row of path, type, tag and text for each. page.js is the files of FOLDER/order, one after the other, in one
# function: nothing of it is global but what it puts there itself.
set -eu -o pipefail
folder=$1 into=$2

text()          # NAME, text on stdin: as bytes, for a text has no escapes then and no longest line
{
	echo "static const char $1[] = {"
	od -An -v -tu1 | sed 's/ *\([0-9][0-9]*\)/\1,/g'
	echo "0 };"
}

script()
{
	printf "(function () {\n'use strict';\n"
	while read -r name; do cat "$folder/$name.js"; done <"$folder/order"
	printf "}());\n"
}

content()       # FILE
{
	case $1 in
	page.js) script ;;
	*) cat "$folder/$1" ;;
	esac
}

if LC_ALL=C grep -n '[^ -~	]' "$folder"/*; then
	echo "embed_files.sh: a byte that is not ASCII" >&2
	exit 1
fi
rows=
while read -r file path type; do
	name=hd_page_${file//[.-]/_}
	content "$file" | text "$name"
	tag=$(content "$file" | sha256sum | cut -c 1-32)
	rows+="	X(\"$path\", \"$type; charset=utf-8\", \"\\\"$tag\\\"\", $name) \\"$'\n'
done >"$into.tmp" <<LIST
index.html / text/html
page.css /page.css text/css
page.js /page.js text/javascript
icon.svg /icon.svg image/svg+xml
LIST
printf '#define HD_PAGE_FILES(X) \\\n%s\n' "$rows" >>"$into.tmp"
mv "$into.tmp" "$into"
