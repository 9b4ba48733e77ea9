#!/bin/bash
# fmt.sh [--check] [FILE...]: the layout rules of the tree.
#
# Tables in this tree are aligned by hand, which no general formatter keeps; so the rules
# are few and each is checked by one line below. Without --check what can be mended
# without judgement is mended first (line ends, trailing blanks, keyword spacing, the
# order of a group of project includes).
# No line ends beyond column 110 (tabs of 8) but rows of tables, which are read downwards: in C a line that
# begins with `X(` or `{`, in a document one that begins with `|`, or that a program printed (it stands in a
# block of ``` without a language).
# Prints FILE:LINE: RULE; exit 1 if a rule is broken. On the whole tree tools/words.sh looks for words, too.
set -eu -o pipefail
cd "$(dirname "$0")/.."

sort_includes()         # FILE...: each run of project includes by floor, equal ones as they stand; tests last
{
	local source
	awk '
		function flush(    i, j, line) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && key(run[j]) < key(run[j - 1]); j--) {
					line = run[j]; run[j] = run[j - 1]; run[j - 1] = line; moved = 1
				}
			for (i = 1; i <= n; i++) text[++nlines] = run[i]
			n = 0
		}
		function key(line,    header, room) {
			header = line; gsub(/.*include "|".*/, "", header)
			room = header; sub(/\/.*/, "", room)
			return sprintf("%04d", room == "tests" ? 9999 : floor[room])
		}
		function finish(    i) {                # writes SOURCE.sorted where that is another text
			flush()
			for (i = 1; moved && i <= nlines; i++) print text[i] >(source ".sorted")
			if (moved) { close(source ".sorted"); print source }
			nlines = moved = 0
		}
		FILENAME == "tools/floors" {
			if ($1 == "floor") for (i = 2; i <= NF; i++) floor[$i] = 10 * NR + i
			next
		}
		FNR == 1 { finish(); source = FILENAME }
		/^#include "/ { run[++n] = $0; next }
		{ flush(); text[++nlines] = $0 }
		END { finish() }' tools/floors "$@" |
		while IFS= read -r source; do
			cat "$source.sorted" >"$source"
			rm -f "$source.sorted"
		done
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
		grep -E -e '\.(c|h|def|sh|cmake|md|json|yaml|awk|py)$' \
			-e '^(.*CMakeLists\.txt|dev|tools/[a-z]+|\.ci/run)$' |
		grep -vE '^(tests/(data/.*|torch/fixtures)|fuzz/corpus)/' | sort -u)    # as others made it
	mapfile -t files < <(for file in "${files[@]}"; do [ ! -f "$file" ] || echo "$file"; done)
fi
[ ${#files[@]} -gt 0 ] || exit 0

if [ $check = no ]; then
	sed -i -E -e 's/\r$//' -e 's/[ \t]+$//' -e '$a\' "${files[@]}"
	mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep -E '\.[ch]$' || true)
	[ ${#sources[@]} -eq 0 ] || sed -i -E \
		-e 's/^(\t*(\} )?)(else )?(if|for|while|switch)\(/\1\3\4 (/' -e 's/\}else/} else/' \
			"${sources[@]}"
	[ ${#sources[@]} -eq 0 ] || sort_includes "${sources[@]}"
fi

awk -v most=110 '
	function bad(rule) { printf "%s:%d: %s\n", FILENAME, FNR, rule; failed = 1 }
	function width(line,    before) {
		if (length(line) + 7 * gsub(/\t/, "\t", line) <= most) return 0       # it need not be known
		while (match(line, /\t/)) {
			before = substr(line, 1, RSTART - 1)
			line = before substr("        ", 1, 8 - length(before) % 8) substr(line, RSTART + 1)
		}
		return length(line)
	}
	function floor_of(header) {
		sub(/\/.*/, "", header)
		return header == "tests" ? 9999 : floor[header] + 0
	}
	function is_row() {
		if (FILENAME ~ /\.(c|h|def)$/) return /^[ \t]*(X\(|\{)/
		return FILENAME ~ /\.md$/ && (printed || /^ *\|/)
	}
	FILENAME == "tools/floors" {
		if ($1 == "floor") for (i = 2; i <= NF; i++) floor[$i] = 10 * NR + i
		if (!listed) next
	}
	FNR == 1 { source = FILENAME ~ /\.[ch]$/; last = fenced = printed = 0; before = "" }
	/^ *```/ { fenced = !fenced; printed = fenced && /^ *```$/ }
	/\r$/ { bad("line ends with CR") }
	/[ \t]$/ { bad("trailing blanks") }
	width($0) > most && !is_row() { bad("wider than " most " columns") }
	!source { next }
	/^ +[^ *]/ && before !~ /[,{(][ \t]*(\/\*.*)?$/ { bad("indent with tabs") }
	/^\t+ +[^ *:?|&+-]/ && before !~ /[,&|?:(+*"\\]$|\/\*|^\t+ +/ {
		bad("blanks after the indenting tabs")
	}
	/(^|[ \t;}])(if|for|while|switch)\(/ && !/^[ \t]*(\*|\/\*)/ {
		bad("a blank between keyword and parenthesis")
	}
	/^\t*(\} )?(else )?(if|for|while|switch) .*\)\{$|^[a-z].*\)\{$|\}else/ && !/=/ {
		bad("a blank before the brace")
	}
	/^[a-z].*\) \{$/ && !/=/ { bad("the brace of a function stands on its own line") }
	/^\t*\{$/ && before ~ /^\t+(if|for|while|switch|else|do)([ (]|$)/ {
		bad("the brace of a block stands at the end of its line")
	}
	/^[ \t]*\/\// { bad("comments are /* */") }
	/(^|[(, \t])(const |struct [a-z_0-9]+|char|int|void|float|double|u?int[0-9]+_t|size_t)\* [a-z]/ &&
		!/^[ \t]*(\*|\/\*)/ { bad("the asterisk belongs to the name") }
	/^#if/ && FNR > 1 { last = 0 }          # what a condition includes stands by itself
	/^#include/ {
		header = $2; gsub(/[<>"]/, "", header)
		self = FILENAME; sub(/^src\//, "", self); sub(/(_test)?\.c$/, ".h", self)
		room = self; sub(/\/.*/, "", room)
		# own header (or the one that a family of files shares), system headers, the project by floor
		now = /</ ? 2 : 3 + floor_of(header)
		if (FILENAME ~ /\.c$/ && (header == self || (!last && index(header, room "/") == 1))) now = 1
		if (header ~ /\.def$/) now = last
		if (now < last) bad("include order: own header, system, project by floor")
		if (last && (now < 3 ? now : 3) != (last < 3 ? last : 3) && before ~ /^#include/)
			bad("a blank line between groups of includes")
		last = now
	}
	{ before = $0 }
	END { exit failed }' tools/floors listed=1 "${files[@]}" || failed=1

full=()
for file in "${files[@]}"; do [ ! -s "$file" ] || full+=("$file"); done
while read -r nth; do
	echo "${full[nth - 1]}: no newline at the end"
	failed=1
done < <([ ${#full[@]} -eq 0 ] || tail -q -c 1 "${full[@]}" | od -An -v -t x1 -w1 |
	awk '$1 != "0a" { print NR }')
[ $whole = no ] || tools/words.sh || failed=1
exit ${failed:-0}
