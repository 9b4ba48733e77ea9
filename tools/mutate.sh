#!/bin/bash
# mutate.sh [--since BASE] [--only OPERATORS] [--list] [FILE...] [-- COMMAND...]: would a test notice if this
# line were wrong?
#
# For every line of src/**/*.c (tests excepted) that changed since BASE (default HEAD: what is not committed),
# or for every line of the FILEs given without --since, makes mutants (tools/mutants.awk says which; --only
# guard,conjunct,negate,swap: those alone) and runs the tests that judge the file: those that tests/judges.txt
# names, else the test beside it, else all unit tests of its room. A mutant that compiles and fails no test is
# a survivor: write the test, or excuse it by its line in tests/mutants.txt. --list only lists them. Exit 1 on
# survivors, 2 if a test fails without any mutant.
#
# It is cheap: all mutants of a file are compiled at once, into one object that asks hd_mutant() which of them
# it is, and linked with the objects of preset debug (HD_PRESET names another) that are there. The tree is not
# touched. A mutant runs until the first test notices, and for HD_SECONDS (10) of processor time and HD_WALL
# (200) seconds a test at most. With COMMAND each mutant is made in a copy of the tree (build/mutate), where
# COMMAND builds and judges it.
#
# HD_MUTANTS bounds how many are tried (default 100, spread evenly; 0: all; tests that read the same word get
# 400). HD_JUDGES names other tests for all files, HD_SIM_SEEDS (100) how many seeds of each kind the
# simulation runs, HD_TREE another folder of build/ to work in.
set -eu -o pipefail
root=${HD_ROOT:-$(cd "$(dirname "$0")/.." && pwd)}
tools=$(cd "$(dirname "$0")" && pwd)
cd "$root"

base=
only=
list=
files=()
while [ $# -gt 0 ]; do
	case $1 in
	--) shift; break ;;
	--since) base=$2; shift ;;
	--only) only=$2; shift ;;
	--list) list=yes ;;
	-*)
		echo "usage: ./dev mutate [--since BASE] [--only OPERATORS] [--list] [FILE...]" \
			"[-- COMMAND...]" >&2
		exit 2
		;;
	*) files+=("$1") ;;
	esac
	shift
done
tree=$root/build/${HD_TREE:-mutate}
build=$root/build/${HD_PRESET:-debug}
limit=${HD_MUTANTS:-100}
excused=$root/tests/mutants.txt
judges=$root/tests/judges.txt
part=$(printf '\037')

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

mutants()               # the rows of mutants.awk for those lines, file by file
{
	local file
	changed_lines >"$tree/.changed"
	cut -d : -f 1 "$tree/.changed" | awk '!seen[$0]++' | while IFS= read -r file; do
		awk -F : -v file="$file" '$1 == file { print $2 }' "$tree/.changed" >"$tree/.lines"
		awk -v file="$file" -v only="$only" -f "$tools/mutants.awk" "$tree/.lines" "$file"
	done
}

verdict()               # ROW killed|stillborn|survived: counts it, names a survivor
{
	local file at last op old new name
	case $2 in
	killed) killed=$((killed + 1)); return ;;
	stillborn) stillborn=$((stillborn + 1)); return ;;
	esac
	IFS=$part read -r file at last op old new <<<"$1"
	name="$file: $old => $new"
	if grep -qF -- "$name    #" "$excused" 2>/dev/null; then
		excuses=$((excuses + 1))
	else
		survivors=$((survivors + 1))
		echo "survived: $file:$at: $old => $new"
	fi
}

# ---- all mutants of a file in one object ----

judges_of()             # FILE: names of tests, the quickest first
{
	local pattern tests room beside
	if [ -n "${HD_JUDGES:-}" ]; then echo "$HD_JUDGES"; return; fi
	if [ -f "$judges" ]; then
		while read -r pattern tests; do
			case $pattern in '' | '#'*) continue ;; esac
			# shellcheck disable=SC2053 # it is a pattern
			if [[ $1 == $pattern ]]; then echo "$tests"; return; fi
		done <"$judges"
	fi
	room=${1#src/}; room=${room%%/*}
	beside=${room}_$(basename "$1" .c)_test
	if [ -f "${1%.c}_test.c" ]; then echo "$beside"
	else
		ninja -C "$build" -t query "tests_$room" | grep -oE "${room}_[a-z0-9_]*_test" | sort -u |
			tr '\n' ' '
	fi
}

compile()               # FILE SOURCE OBJECT: as the build does, but quickly
{
	local object command quickly
	object=$(ninja -C "$build" -t targets all | grep -oE "[^ ]*\.dir/${1//./\\.}\.o" | grep -v alone_ |
		head -n 1)
	[ -n "$object" ] || { echo "$1 is compiled nowhere in $build" >&2; exit 2; }
	quickly='-O0 -g0 -w -Wno-error -fmax-errors=0'
	command=$(ninja -C "$build" -t commands "$object" | tail -n 1 |
		sed -E -e 's/ -M[TF] [^ ]+//g' -e 's/ -MD//g' -e "s| -o [^ ]+| -o $3|" \
			-e "s| -c [^ ]+| $quickly -iquote $root/$(dirname "$1") -c $2|")
	(cd "$build" && sh -c "$command")
}

link_with()             # TEST OBJECT: the test with this object in the place of the library's
{
	local command
	command=$(ninja -C "$build" -t commands "$1" | tail -n 1 |
		sed -E -e "s| -o [^ ]+ | -o $tree/$1 $2 $tree/.which.o |")
	(cd "$build" && sh -c "$command")
}

judge()                 # NUMBER TEST...: killed or survived
{
	local number=$1 test
	shift
	for test in "$@"; do
		(
			ulimit -t "${HD_SECONDS:-10}" -c 0
			exec env HD_MUTANT="$number" CMOCKA_TEST_ABORT=1 MALLOC_PERTURB_=165 \
				HD_SIM_SEEDS="${HD_SIM_SEEDS:-100}" HD_MUTANTS=400 SOURCE_DIR="$root" \
				BUILD_DIR="$build" HEDDLE_BIN="$build/heddle" \
				timeout -k 1 "${HD_WALL:-200}" "$tree/$test"
		) >"$tree/.log" 2>&1 || { [ $? = 77 ] || { echo killed; return; } }
	done
	echo survived
}

# Mutants that do not compile are found by what the compiler says, and left out.
compile_all()           # FILE ROWS: writes numbers to .born
{
	awk -F "$part" -v OFS="$part" '{ print NR, $2, $3, $6 }' "$2" >"$tree/.numbered"
	: >"$tree/.left"
	awk -v file="$1" -v left="$tree/.left" -f "$tools/mutate_all.awk" "$tree/.numbered" "$1" \
		>"$tree/.all.c"
	while ! compile "$1" "$tree/.all.c" "$tree/.all.o" 2>"$tree/.errors"; do
		grep -oE '^mutant\.[0-9]+:[0-9]+:[0-9]+: (fatal )?error' "$tree/.errors" | cut -d . -f 2 |
			cut -d : -f 1 | sort -un >"$tree/.bad"
		[ -s "$tree/.bad" ] || { cat "$tree/.errors" >&2; exit 2; }
		awk -F "$part" 'NR == FNR { bad[$1] = 1; next } !($1 in bad)' "$tree/.bad" "$tree/.numbered" \
			>"$tree/.rest"
		mv "$tree/.rest" "$tree/.numbered"
		awk -v file="$1" -f "$tools/mutate_all.awk" "$tree/.numbered" "$1" >"$tree/.all.c"
	done
	cut -d "$part" -f 1 "$tree/.numbered" >"$tree/.born"
}

# One that stands outside of functions: compiled alone.
compile_one()           # FILE ROW: 1 if it does not compile
{
	local at last new
	IFS=$part read -r _ at last _ _ new <<<"$2"
	replaced "$1" "$at" "$last" "$new" >"$tree/.all.c"
	compile "$1" "$tree/.all.c" "$tree/.all.o" 2>/dev/null
}

try_file()              # FILE ROWS
{
	local file=$1 rows=$2 tests test i row
	tests=$(judges_of "$file")
	[ -n "$tests" ] || { echo "no test judges $file: name it in tests/judges.txt" >&2; exit 2; }
	# shellcheck disable=SC2086
	ninja -C "$build" $tests >"$tree/.log" 2>&1 || { tail -n 20 "$tree/.log" >&2; exit 2; }
	cat >"$tree/.which.c" <<-'C'
		extern char *getenv(const char *);
		int hd_mutant(void);
		int hd_mutant(void)
		{
			static int n = -1;
			if (n < 0) {
				n = 0;
				for (const char *p = getenv("HD_MUTANT"); p && *p; p++) n = 10 * n + *p - 48;
			}
			return n;
		}
	C
	"${CC:-cc}" -O1 -fPIE -c -o "$tree/.which.o" "$tree/.which.c"
	compile_all "$file" "$rows"
	for test in $tests; do link_with "$test" "$tree/.all.o"; done
	# shellcheck disable=SC2086
	[ "$(judge 0 $tests)" = survived ] || {
		cat "$tree/.log" >&2
		echo "$file: a test fails without any mutant: $tests" >&2
		exit 2
	}
	i=0
	while IFS= read -r row <&4; do
		i=$((i + 1))
		if grep -qx "$i" "$tree/.left"; then continue
		elif ! grep -qx "$i" "$tree/.born"; then verdict "$row" stillborn
		else
			# shellcheck disable=SC2086
			verdict "$row" "$(judge "$i" $tests)"
		fi
	done 4<"$rows"
	while IFS= read -r i <&4; do
		row=$(sed -n "${i}p" "$rows")
		if ! compile_one "$file" "$row"; then verdict "$row" stillborn; continue; fi
		for test in $tests; do link_with "$test" "$tree/.all.o"; done
		# shellcheck disable=SC2086
		verdict "$row" "$(judge 0 $tests)"
	done 4<"$tree/.left"
}

# ---- one after another, in a copy of the tree ----

copy_tree()
{
	git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
		[ ! -f "$file" ] || printf '%s\0' "$file"
	done | tar --null -T - -cf - | tar -xf - -C "$tree"
}

replaced()              # FILE FIRST LAST NEW: the file with NEW in the place of those lines
{
	HD_NEW=$4 awk -v first="$2" -v last="$3" '
		FNR == first && /^[a-z].*\) \{ .* \}$/ {
			print substr($0, 1, index($0, ") { ") + 3) ENVIRON["HD_NEW"] " }"; next
		}
		FNR == first { print "\t" ENVIRON["HD_NEW"]; next }
		FNR > first && FNR <= last { print ""; next }
		{ print }' "$1"
}

try_in_copy()           # ROWS COMMAND...
{
	local rows=$1 row file at last new what
	shift
	copy_tree
	while IFS= read -r row <&3; do
		IFS=$part read -r file at last _ _ new <<<"$row"
		replaced "$file" "$at" "$last" "$new" >"$tree/$file"
		what=killed
		! (cd "$tree" && timeout 300 "$@") >"$tree/.log" 2>&1 || what=survived
		verdict "$row" $what
		cp "$file" "$tree/$file"
	done 3<"$rows"
}

mkdir -p "$tree"
mutants >"$tree/.all"
total=$(wc -l <"$tree/.all")
awk -v total="$total" -v limit="$limit" '
	!limit || total <= limit || int(NR * limit / total) > int((NR - 1) * limit / total)' \
	"$tree/.all" >"$tree/.mutants"
if [ -n "$list" ]; then
	awk -F "$part" '{ printf "%s:%d: %s: %s => %s\n", $1, $2, $4, $5, $6 }' "$tree/.mutants"
	exit 0
fi
killed=0 stillborn=0 excuses=0 survivors=0
if [ $# -gt 0 ]; then
	try_in_copy "$tree/.mutants" "$@"
else
	[ -f "$build/build.ninja" ] || cmake --preset "$(basename "$build")" >/dev/null
	for file in $(cut -d "$part" -f 1 "$tree/.mutants" | awk '!seen[$0]++'); do
		awk -F "$part" -v file="$file" '$1 == file' "$tree/.mutants" >"$tree/.rows"
		try_file "$file" "$tree/.rows"
	done
fi
echo "$(wc -l <"$tree/.mutants") of $total mutants tried: $killed killed, $stillborn did not compile," \
	"$excuses excused, $survivors survived"
[ $survivors -eq 0 ]
