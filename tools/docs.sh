#!/bin/bash
# docs.sh [ROOT]: do the documents tell the truth that a machine can check?
#
# In README.md, CONTRIBUTING.md, ARCHITECTURE.md, SECURITY.md, docs/**/*.md and the READMEs of
# the rooms:
#  1. every `./dev VERB` and `heddle VERB` in a code block or in back-ticks is a verb;
#  2. every path in back-ticks that begins with a folder of the tree exists
#     (`<name>`, `*` and `...` in it mean any), and so does every relative link;
#  3. every function, struct or macro in back-ticks (`hd_...`, `HD_...`) occurs in the sources;
#  4. the commands of a block that begins with ```sh exit 0 when HD_DOCS_RUN=1, one a line, or more lines
#     where they end in \; they run in a new folder with links to what the tree holds.
#  5. between `<!-- demo NAME -->` and `<!-- /demo NAME -->` stands one digest, on two lines, and which
#     kernels gave it; when HD_DOCS_RUN=1 that of the demo `train` is what the demo gives here, where this
#     machine has these kernels (bench/proof.sh --check).
#  6. every header or source file, and every function or macro (`hd_...`, `HD_...`), that a comment in src
#     names exists; words of a pattern stand in capitals (hd_reader_NAME), files of others in <angle
#     brackets>.
# Architecture decision records name rejected ways too: of them only links are checked.
set -eu -o pipefail
cd "${1:-$(dirname "$0")/..}"

mapfile -t documents < <(ls README.md CONTRIBUTING.md ARCHITECTURE.md SECURITY.md 2>/dev/null || true
	find docs src examples -name '*.md' 2>/dev/null | LC_ALL=C sort)
failed=0
complain() { echo "$1"; failed=1; }

code()                  # FILE: LINE|TEXT of everything in back-ticks or in a fenced block
{
	awk '
		/^[ \t]*```/ { fenced = !fenced; next }
		fenced { sub(/^\$ /, ""); print FNR "|" $0; next }
		{
			n = split($0, part, "`")
			for (i = 2; i <= n; i += 2) if (i < n) print FNR "|" part[i]
		}' "$1"
}

# what is known, read once: documents name it some thousand times
declare -A dev_verb heddle_verb family named
while read -r verb; do dev_verb[$verb]=1; done < <(
	./dev 2>/dev/null | sed -n 's/^  \.\/dev \([a-z]*\) .*/\1/p')
while read -r verb; do heddle_verb[$verb]=1 family[${verb% *}]=1; done < <(
	sed -nE 's/^\t\.name = "([a-z]+( [a-z-]+)?)".*/\1/p' src/cmd/*/*.c 2>/dev/null)
while read -r name; do named[$name]=1; done < <(grep -rhowsE --include='*.[ch]' --include=CMakeLists.txt \
	--include='*.cmake' --include='*.sh' --include=dev --include=CMakePresets.json \
	'(hd|HD)_[A-Za-z0-9_]+' src cmake tests tools fuzz dev CMakeLists.txt CMakePresets.json .ci |
	LC_ALL=C sort -u)

# parts TEXT PATTERN N: calls `part` with the N-th group of each place in TEXT, left to right
parts()
{
	local rest=$1
	while [[ $rest =~ $2 ]]; do
		part "${BASH_REMATCH[$3]}"
		rest=" ${rest#*"${BASH_REMATCH[0]}"}"
	done
}

check_verbs()           # FILE LINE TEXT
{
	local where=$1:$2
	part() { [[ -n ${dev_verb[$1]-} ]] || complain "$where: ./dev has no verb '$1'"; }
	parts "$3" '(^|[ (;&|])\./dev ([a-z]+)' 2
	[ ${#heddle_verb[@]} -gt 0 ] || return 0
	part()          # a verb alone, a verb with its subverb, or the family of one
	{
		[[ -n ${heddle_verb[$1]-}${heddle_verb[${1% *}]-} ]] ||
			[[ $1 != *' '* && -n ${family[$1]-} ]] ||
			complain "$where: heddle has no verb '$1'"
	}
	parts "$3" '(^|/)heddle ([a-z]+( [a-z-]+)?)' 2
}

check_path()            # FILE LINE TEXT
{
	local path
	[[ $3 =~ ^(src|tests|tools|docs|examples|fuzz|bench|cmake|\.ci)/[A-Za-z0-9_./\<\>*-]*$ ]] || return 0
	path=$(sed -E -e 's/<[a-z]+>/*/g' -e 's/\.\.\.$/*/' <<<"$3")
	compgen -G "$path" >/dev/null || compgen -G "$path.*" >/dev/null || complain "$1:$2: no such file: $3"
}

check_name()            # FILE LINE TEXT
{
	local where=$1:$2
	part() { [[ -n ${named[$1]-} || $1 == *_ ]] || complain "$where: nothing is called $1"; }
	parts "$3" '(^|[^A-Za-z0-9_])((hd|HD)_[A-Za-z0-9_]+)' 2
}

for document in ${documents[@]+"${documents[@]}"}; do
	case $document in */*) folder=${document%/*} ;; *) folder=. ;; esac
	while IFS= read -r link; do
		[ -e "$folder/${link#](}" ] || complain "$document: no such link: ${link#](}"
	done < <(grep -oE '\]\([^)#: ]+' "$document")
	case $document in docs/adr/[0-9]*) continue ;; esac
	while IFS='|' read -r line text; do
		check_verbs "$document" "$line" "$text"
		check_path "$document" "$line" "$text"
		check_name "$document" "$line" "$text"
	done < <(code "$document")
	[ "${HD_DOCS_RUN:-0}" = 1 ] || continue
	scratch=$(mktemp -d)
	ln -s "$PWD"/* "$scratch"
	while IFS= read -r command; do
		(cd "$scratch" && eval "$command") >"$scratch/.log" 2>&1 || {
			cat "$scratch/.log"
			complain "$document: failed: $command"
		}
	done < <(awk '
		/^```sh/ { sh = 1; next }
		/^```/ { sh = 0 }
		sh && NF && !/^#/ { if (sub(/\\$/, "")) printf "%s", $0; else print }' "$document")
	rm -rf "$scratch"
done
check_demo()            # NAME
{
	local block digests
	block=$(sed -n "/^<!-- demo $1 -->\$/,/^<!-- \/demo $1 -->\$/p" README.md)
	digests=$(grep -oE '^  state +[0-9a-f]{32} ' <<<"$block" | sed 's/ *$//; s/.* //')
	[ "$(wc -w <<<"$digests")" = 2 ] && [ "$(sort -u <<<"$digests" | wc -w)" = 1 ] &&
		grep -q 'IDENTICAL$' <<<"$block" ||
		complain "README.md: demo $1 does not show one digest twice"
	grep -qE 'kernels: [a-z]+ on [a-z0-9]+, fingerprint [0-9a-f]{32}' <<<"$block" ||
		complain "README.md: demo $1 does not say which kernels gave its digest, by their fingerprint"
}
for name in $(sed -nE 's/^<!-- demo ([a-z]+) -->$/\1/p' README.md); do
	check_demo "$name"
done
if [ "${HD_DOCS_RUN:-0}" = 1 ] && [ -x bench/proof.sh ] &&
	grep -q '^<!-- demo train -->$' README.md; then
	bench/proof.sh --check train || complain "README.md: the digest of demo train is another one here"
fi

check_comments()        # twice over the sources: what their code names, then what their comments do
{
	local files
	mapfile -t files < <(find src -name '*.[ch]' | LC_ALL=C sort)
	{ find src tests tools fuzz bench \( -name '*.[ch]' -o -name '*.sh' \) 2>/dev/null || true; } |
		awk '
		function both_ends(line,    at) {       # sets code and comment
			code = comment = ""
			gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
			while (line != "") {
				at = index(line, inside ? "*/" : "/*")
				if (inside) comment = comment " " (at ? substr(line, 1, at - 1) : line)
				else code = code " " (at ? substr(line, 1, at - 1) : line)
				if (!at) break
				line = substr(line, at + 2)
				inside = !inside
			}
		}
		FILENAME == "-" {                       # a/b/c.h is known as c.h, b/c.h and a/b/c.h
			n = split($0, part, "/")
			for (tail = part[i = n]; i; tail = part[--i] "/" tail) file[tail]
			next
		}
		FNR == 1 { inside = 0; if (FILENAME == ARGV[2]) turn++ }
		{ both_ends($0) }
		turn == 1 {
			if ($0 ~ /^#/) code = $0        # names of settings stand in texts, too
			else if ($0 ~ /"/) { code = $0; sub(/\/\*.*/, "", code) }
			while (match(code, /(hd|HD)_[A-Za-z0-9_]+/)) {
				name[substr(code, RSTART, RLENGTH)]
				code = substr(code, RSTART + RLENGTH)
			}
			next
		}
		comment != "" {
			rest = comment
			while (match(rest, /(^|[ (])[a-z0-9_][a-z0-9_\/]*\.[hc]([^a-z0-9_.\/]|$|\.$|\. )/)) {
				word = substr(rest, RSTART, RLENGTH)
				rest = substr(rest, RSTART + RLENGTH - 1)
				gsub(/^[ (]|[^a-z]*$/, "", word)
				if (word == "llm.c" || word in file) continue           # llm.c is a project
				print FILENAME ":" FNR ": no such file: " word
				failed = 1
			}
			while (match(comment, /(hd|HD)_[A-Za-z0-9_]+/)) {
				word = substr(comment, RSTART, RLENGTH)
				comment = substr(comment, RSTART + RLENGTH)
				if (word ~ /_$|^hd_.*[A-Z]/ || word in name || comment ~ /^[<*]/) continue
				print FILENAME ":" FNR ": nothing is called " word
				failed = 1
			}
		}
		END { exit failed }' - "${files[@]}" "${files[@]}"
}
check_comments || failed=1

[ $failed -eq 0 ] && echo "${#documents[@]} documents checked"
exit $failed
