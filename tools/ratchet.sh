#!/bin/bash
# ratchet.sh [--check]: counts, for each room and each folder beside src, words that this tree uses in place
# of the field's and lines over 110 columns. tools/ratchet holds how many there may be: a count may only fall.
# Without --check counts that fell are written down. HD_TREE: of another tree. Prints PLACE: what grew; exit 1
# if anything did.
set -eu -o pipefail
cd "${HD_TREE:-$(dirname "$0")/..}"

count()                 # PLACE WORDS LINES
{
	git ls-files --cached --others --exclude-standard | grep -E '\.(c|h|def|sh|md)$|^dev$' |
		grep -vE '^(tests/data|fuzz/corpus)/|^docs/(bugs\.md|adr/)|^(tools/ratchet|tests/ratchet_test)\.sh' | LC_ALL=C sort -u |
		while read -r file; do [ ! -f "$file" ] || echo "$file"; done | xargs awk '
		function width(line,    before) {
			while (match(line, /\t/)) {
				before = substr(line, 1, RSTART - 1)
				line = before substr("        ", 1, 8 - length(before) % 8) substr(line, RSTART + 1)
			}
			return length(line)
		}
		FNR == 1 {
			n = split(FILENAME, part, "/")
			place = n == 1 ? "top" : part[1] == "src" ? part[2] : part[1]
			seen[place]
			fenced = 0
		}
		FILENAME ~ /\.md$/ && /^ *```/ { fenced = !fenced }
		# rows of tables are read downwards, and what a program printed stays as it was
		!fenced && width($0) > 110 && !/^[ \t]*(X\(|\{|\|)/ && !/^[ \t]*\/\*.*\*\/ *\\?$/ {
			lines[place]++
		}
		{
			text = " " tolower($0) " "
			gsub(/[^a-z_0-9]+/, "  ", text)
			words[place] += gsub(/ (who|whom|nobody|told|taught|anew|aside|ere) /, "&", text)
		}
		END { for (place in seen) print place, words[place] + 0, lines[place] + 0 }' | LC_ALL=C sort
}

check=no
[ "${1:-}" != --check ] || check=yes
now=$(count)
touch tools/ratchet
awk -v check=$check '
	FILENAME == ARGV[1] { if (/^#/ || !NF) next; any = 1; may_words[$1] = $2; may_lines[$1] = $3; next }
	!any { exit }                           # it is written for the first time
	$2 > may_words[$1] { printf "%s: %d words of tools/ratchet, %d allowed: say it with the noun of the field\n", $1, $2, may_words[$1]; bad = 1 }
	$3 > may_lines[$1] { printf "%s: %d lines over 110 columns, %d allowed\n", $1, $3, may_lines[$1]; bad = 1 }
	END { exit bad }' tools/ratchet <(echo "$now") || exit 1
[ $check = no ] || exit 0
{
	sed -n '/^#/p' tools/ratchet
	echo "$now"
} >tools/ratchet.new
cmp -s tools/ratchet tools/ratchet.new || cat tools/ratchet.new >tools/ratchet
rm -f tools/ratchet.new
