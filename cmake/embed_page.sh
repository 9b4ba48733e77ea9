#!/bin/bash
# embed_page.sh FOLDER INTO NAME: a page's style, body and script as texts of C, hd_NAME_style and so on,
# with the hashes that its policy names. The script is the files of FOLDER/order, one after the other, in one
# function: nothing of it is global but what it puts there itself.
set -eu -o pipefail
folder=$1 into=$2 name_of_page=$3

text()          # NAME, text on stdin: as bytes, for a text has no escapes then and no longest line
{
	echo "static const char $1[] = {"
	od -An -v -tu1 | sed 's/ *\([0-9][0-9]*\)/\1,/g'
	echo "0 };"
}

hash_of() { printf "$(sha256sum | cut -d ' ' -f 1 | sed 's/../\\x&/g')" | base64 -w 0; }

script()
{
	printf "(function () {\n'use strict';\n"
	while read -r name; do cat "$folder/$name.js"; done <"$folder/order"
	printf "}());\n"
}

if LC_ALL=C grep -n '[^ -~	]' "$folder"/*.js "$folder"/*.css "$folder"/*.html; then
	echo "embed_page.sh: a byte that is not ASCII" >&2
	exit 1
fi
for part in style body script; do
	case $part in
	style) content=$(cat "$folder/page.css"; echo x) ;;
	body) content=$(cat "$folder/body.html"; echo x) ;;
	script) content=$(script; echo x) ;;
	esac
	content=${content%x}
	case $content in
	*'</script'*|*'</style'*) echo "embed_page.sh: the $part ends its own element" >&2; exit 1 ;;
	esac
	printf %s "$content" | text "hd_${name_of_page}_$part"
	[ $part = body ] ||
		echo "#define HD_${name_of_page^^}_${part^^}_HASH \"$(printf %s "$content" | hash_of)\""
done >"$into.tmp"
mv "$into.tmp" "$into"
