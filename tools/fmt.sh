#!/bin/bash
# fmt.sh [--check] [FILE...]: the layout rules of the tree.
#
# Tables in this tree are aligned by hand, which no general formatter keeps; so the rules
# are few and each is checked by one line below. Without --check what can be mended
# without judgement is mended first (line ends, trailing blanks, keyword spacing, the
# order of a group of project includes).
# Prints FILE:LINE: RULE; exit 1 if a rule is broken. On the whole tree tools/ratchet.sh counts, too.
set -eu -o pipefail
cd "$(dirname "$0")/.."

sort_includes()         # FILE: each run of project includes by floor, equal ones as they stand; tests last
{
	awk '
		function flush(    i, j, line) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && key(run[j]) < key(run[j - 1]); j--) { line = run[j]; run[j] = run[j - 1]; run[j - 1] = line }
			for (i = 1; i <= n; i++) print run[i]
			n = 0
		}
		function key(line,    header, room) {
			header = line; gsub(/.*include "|".*/, "", header); room = header; sub(/\/.*/, "", room)
			return sprintf("%04d", room == "tests" ? 9999 : floor[room])
		}
		FILENAME == "tools/floors" { if ($1 == "floor") { nfloors++; for (i = 2; i <= NF; i++) floor[$i] = 10 * nfloors + i }; next }
		/^#include "/ { run[++n] = $0; next }
		{ flush(); print }
		END { flush() }' tools/floors "$1" >"$1.sorted"
	cmp -s "$1" "$1.sorted" || cat "$1.sorted" >"$1"
	rm -f "$1.sorted"
}

check=no
[ "${1:-}" != --check ] || { check=yes; shift; }
case ${1:-} in -*) echo "usage: ./dev fmt [--check] [FILE...]" >&2; exit 2 ;; esac

whole=no
if [ $# -gt 0 ]; then
	files=("$@")
else
	whole=yes
	mapfile -t files < <(git ls-files --cached --others --exclude-standard |
		grep -E -e '\.(c|h|def|sh|cmake|md|json|yaml|awk)$' \
			-e '^(.*CMakeLists\.txt|dev|tools/[a-z]+|\.ci/run)$' |
		grep -v '^tests/data/.*/' | sort -u)          # what others made stays as they made it
	mapfile -t files < <(for file in "${files[@]}"; do [ ! -f "$file" ] || echo "$file"; done)
fi
[ ${#files[@]} -gt 0 ] || exit 0

if [ $check = no ]; then
	sed -i -E -e 's/\r$//' -e 's/[ \t]+$//' -e '$a\' "${files[@]}"
	mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep -E '\.[ch]$' || true)
	[ ${#sources[@]} -eq 0 ] || sed -i -E \
		-e 's/^(\t*(\} )?)(else )?(if|for|while|switch)\(/\1\3\4 (/' -e 's/\}else/} else/' \
			"${sources[@]}"
	for source in ${sources[@]+"${sources[@]}"}; do sort_includes "$source"; done
fi

awk -v own_limit=160 -v tab=8 '
	function bad(rule) { printf "%s:%d: %s\n", FILENAME, FNR, rule; failed = 1 }
	function width(line,    before) {
		while (match(line, /\t/)) {
			before = substr(line, 1, RSTART - 1)
			line = before substr("        ", 1, tab - length(before) % tab) substr(line, RSTART + 1)
		}
		return length(line)
	}
	function floor_of(header) { sub(/\/.*/, "", header); return header == "tests" ? 9999 : floor[header] + 0 }
	FILENAME == "tools/floors" { if ($1 == "floor") { n++; for (i = 2; i <= NF; i++) floor[$i] = 10 * n + i }; if (!listed) next }
	FNR == 1 { source = FILENAME ~ /\.[ch]$/; last = 0; before = "" }
	/\r$/ { bad("line ends with CR") }
	/[ \t]$/ { bad("trailing blanks") }
	!source { next }
	/^ +[^ *]/ && before !~ /[,{(][ \t]*(\/\*.*)?$/ { bad("indent with tabs") }
	/^\t+ +[^ *:?|&+-]/ && before !~ /[,&|?:(+*"\\]$|\/\*|^\t+ +/ { bad("blanks after the indenting tabs") }
	# rows of tables may be wider: they are read downwards
	width($0) > own_limit && !/^[ \t]*(X\(|\{|\/\*.*\*\/ *\\?$)/ { bad("wider than " own_limit " columns") }
	/(^|[ \t;}])(if|for|while|switch)\(/ && !/^[ \t]*(\*|\/\*)/ { bad("a blank between keyword and parenthesis") }
	/^\t*(\} )?(else )?(if|for|while|switch) .*\)\{$|^[a-z].*\)\{$|\}else/ && !/=/ { bad("a blank before the brace") }
	/^[a-z].*\) \{$/ && !/=/ { bad("the brace of a function stands on its own line") }
	/^\t*\{$/ && before ~ /^\t+(if|for|while|switch|else|do)([ (]|$)/ { bad("the brace of a block stands at the end of its line") }
	/^[ \t]*\/\// { bad("comments are /* */") }
	/(^|[(, \t])(const |struct [a-z_0-9]+|char|int|void|float|double|u?int[0-9]+_t|size_t)\* [a-z]/ && !/^[ \t]*(\*|\/\*)/ { bad("the asterisk belongs to the name") }
	/^#if/ && FNR > 1 { last = 0 }          # what a condition includes stands by itself
	/^#include/ {
		header = $2; gsub(/[<>"]/, "", header)
		self = FILENAME; sub(/^src\//, "", self); sub(/(_test)?\.c$/, ".h", self)
		room = self; sub(/\/.*/, "", room)
		# own header (or the one that a family of files shares), system headers, the project by floor
		now = FILENAME ~ /\.c$/ && (header == self || (!last && index(header, room "/") == 1)) ? 1 : /</ ? 2 : 3 + floor_of(header)
		if (header ~ /\.def$/) now = last
		if (now < last) bad("include order: own header, system, project by floor")
		if (last && (now < 3 ? now : 3) != (last < 3 ? last : 3) && before ~ /^#include/) bad("a blank line between groups of includes")
		last = now
	}
	{ before = $0 }
	END { exit failed }' tools/floors listed=1 "${files[@]}" || failed=1

for file in "${files[@]}"; do
	if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then
		echo "$file: no newline at the end"
		failed=1
	fi
done
if [ $whole = yes ]; then
	if [ $check = yes ]; then tools/ratchet.sh --check || failed=1; else tools/ratchet.sh || failed=1; fi
fi
exit ${failed:-0}
