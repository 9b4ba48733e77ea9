#!/bin/bash
# mutate.sh [--since BASE] [FILE...] [-- COMMAND...]: would a test notice if this line were wrong?
#
# For every line of src/**/*.c (tests excepted) that changed since BASE (default HEAD: what
# is not committed), or for every line of the FILEs given without --since, makes mutants:
# another operator, another constant, the statement dropped; builds each in a copy of the
# tree (build/mutate) and runs COMMAND there, by default the unit tests of the file's room.
# A mutant that compiles and fails no test is a survivor: write the test, or excuse it by
# its line in tests/mutants.txt. HD_MUTANTS bounds how many are tried (default 100, spread
# evenly). Exit 1 on survivors.
set -eu -o pipefail
root=${HD_ROOT:-$(cd "$(dirname "$0")/.." && pwd)}
cd "$root"

base=
files=()
while [ $# -gt 0 ]; do
	case $1 in
	--) shift; break ;;
	--since) base=$2; shift ;;
	-*) echo "usage: ./dev mutate [--since BASE] [FILE...] [-- COMMAND...]" >&2; exit 2 ;;
	*) files+=("$1") ;;
	esac
	shift
done
tree=$root/build/mutate
limit=${HD_MUTANTS:-100}
excused=$root/tests/mutants.txt

changed_lines()         # FILE:LINE, one per line
{
	if [ -z "$base" ] && [ ${#files[@]} -gt 0 ]; then
		awk '{ print FILENAME ":" FNR }' "${files[@]}"
		return
	fi
	[ ${#files[@]} -gt 0 ] || files=('src/*.c')
	git diff -U0 --no-color "${base:-HEAD}" -- "${files[@]}" ':!src/*_test.c' | awk '
		/^\+\+\+ / { file = substr($2, 3) }
		/^@@ / {
			split(substr($3, 2), at, ","); n = at[2] == "" ? 1 : at[2]
			for (i = 0; i < n; i++) print file ":" at[1] + i
		}'
}

mutants()               # FILE|LINE|OLD|NEW for each changed line, OLD and NEW without indentation
{
	changed_lines | while IFS=: read -r file line; do
		awk -v file="$file" -v at="$line" '
			FNR == at && /^\t/ && !/^\t*(\/\*|\*)/ {
				text = $0; sub(/^\t+/, "", text); sub(/[ \t]*\/\*.*\*\/$/, "", text)
				n = split(" < \001 <= \001 <= \001 < \001 > \001 >= \001 >= \001 > \001 == \001 != \001 != \001 == \001 + \001 - \001 - \001 + \001 * \001 + \001 && \001 \174\174 \001 \174\174 \001 && \001 += \001 -= \001 -= \001 += \001++\001--\001<<\001>>", pair, "\001")
				for (i = 1; i < n; i += 2) swap(pair[i], pair[i + 1])
				constants()
				if (text ~ /^[a-z_][a-zA-Z0-9_.>\[\]()-]* ?([-+*|&]?=|\(|\+\+|--).*;$/ && text !~ /^(return|goto|break|continue)/ ) out("(void)0;")
			}
			function out(new) { if (new != text) print file "|" at "|" text "|" new }
			function swap(old, new,    from, i) {
				from = 1
				while ((i = index(substr(text, from), old)) > 0) {
					i += from - 1
					out(substr(text, 1, i - 1) new substr(text, i + length(old)))
					from = i + length(old)
				}
			}
			function constants(    rest, from, number) {
				from = 1
				while (match(substr(text, from), /(^|[^a-zA-Z0-9_."%])[0-9]+([^a-zA-Z0-9_.x"]|$)/)) {
					rest = substr(text, from + RSTART - 1); skip = match(rest, /[0-9]/) - 1
					number = substr(rest, skip + 1); sub(/[^0-9].*/, "", number)
					out(substr(text, 1, from + RSTART - 2 + skip) (number + 1) substr(rest, skip + 1 + length(number)))
					from += RSTART - 1 + skip + length(number)
				}
			}' "$file"
	done
}

copy_tree()
{
	mkdir -p "$tree"
	git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
		[ ! -f "$file" ] || printf '%s\0' "$file"
	done | tar --null -T - -cf - | tar -xf - -C "$tree"
}

judge()                 # FILE COMMAND...: killed, stillborn or survived
{
	local file=$1 room
	shift
	room=${file#src/}; room=${room%%/*}
	if [ $# -gt 0 ]; then
		(cd "$tree" && timeout 300 "$@") >"$tree/.log" 2>&1 && echo survived || echo killed
		return
	fi
	if ! (cd "$tree" && ninja -C build/asan "tests_$room") >"$tree/.log" 2>&1; then echo stillborn
	elif (cd "$tree" && timeout 300 tools/run_tests.sh build/asan -L "^$room\$" --stop-on-failure) >"$tree/.log" 2>&1; then echo survived
	else echo killed
	fi
}

rm -f "$tree/.mutants"
copy_tree
mutants >"$tree/.all"
total=$(wc -l <"$tree/.all")
awk -v total="$total" -v limit="$limit" 'int(NR * limit / total) > int((NR - 1) * limit / total) || total <= limit' "$tree/.all" >"$tree/.mutants"
[ $# -gt 0 ] || [ "$total" = 0 ] || (cd "$tree" && cmake --preset asan >/dev/null)
killed=0 stillborn=0 excuses=0 survivors=0
while IFS= read -r row <&3; do
	file=${row%%|*}; rest=${row#*|}; line=${rest%%|*}; rest=${rest#*|}
	# a line of C may hold bars itself: cut where old and new differ by what mutants() wrote
	old=$(sed -n "${line}p" "$file" | sed -E -e 's/^\t+//' -e 's/[ \t]*\/\*.*\*\/$//')
	new=${rest:$((${#old} + 1))}
	HD_OLD=$old HD_NEW=$new awk -v at="$line" '
		FNR == at { i = index($0, ENVIRON["HD_OLD"]); $0 = substr($0, 1, i - 1) ENVIRON["HD_NEW"] substr($0, i + length(ENVIRON["HD_OLD"])) }
		{ print }' "$file" >"$tree/$file"
	case $(judge "$file" "$@") in
	killed) killed=$((killed + 1)) ;;
	stillborn) stillborn=$((stillborn + 1)) ;;
	survived)
		name="$file: $old => $new"
		if grep -qF -- "$name" "$excused" 2>/dev/null; then
			excuses=$((excuses + 1))
		else
			survivors=$((survivors + 1))
			echo "survived: $file:$line: $old => $new"
		fi
		;;
	esac
	cp "$file" "$tree/$file"
done 3<"$tree/.mutants"
echo "$(wc -l <"$tree/.mutants") of $total mutants tried: $killed killed, $stillborn did not compile, $excuses excused, $survivors survived"
[ $survivors -eq 0 ]
