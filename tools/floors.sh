#!/bin/bash
# floors.sh [ROOT]: checks every #include of ROOT/src, tests and fuzz against ROOT/tools/floors.
# src/ROOM/testing.h (testing_WHAT.h) is what the tests of a room share: it may include what tests include,
# and only tests may include it. A struct tag has one definition in src, tests apart. So has a function that
# is not static (what stands in for a missing library is in WHAT_none.c or dnnl0.c; each program has a
# main.c), and so has a number or a name in the tables of messages, events and failpoints.
# Prints one line per violation; exit 1 if there is any.
set -eu -o pipefail
cd "${1:-$(dirname "$0")/..}"

folders=$(ls -d src tests fuzz bench 2>/dev/null || true)
find $folders -name '*.[ch]' | LC_ALL=C sort | xargs awk '
	function bad(why) { printf "%s:%d: %s\n", FILENAME, FNR, why; failed = 1 }
	function under(place, path) {
		return index(path, place) == 1 && substr(path, length(place) + 1, 1) ~ /^[.\/_]?$/
	}
	function inside(places, path,    n, at, i) {
		n = split(places, at, " ")
		for (i = 1; i <= n; i++) if (under(at[i], path)) return 1
		return 0
	}
	function is_open(header, room,    place, at, n, i) {
		for (place in opened) if (under(place, header)) {
			n = split(opened[place], at, " ")
			for (i = 1; i <= n; i++) if (at[i] == room) return 1
		}
		return 0
	}
	function row_of(header) { return header in kind ? header : substr(header, 1, index(header, "/")) }
	FILENAME == "tools/floors" {
		sub(/#.*/, "")
		if ($1 == "floor") {
			nfloors++
			for (i = 2; i <= NF; i++) { floor[$i] = nfloors; order[$i] = i }
		} else if ($1 == "deny") {
			n = split($2, places, ",")
			$1 = $2 = ""
			for (i = 1; i <= n; i++) denied[places[i]] = denied[places[i]] $0
		}
		else if ($1 == "pure") for (i = 2; i <= NF; i++) pure[$i]
		else if ($1 == "open") { place = $2; $1 = $2 = ""; opened[place] = opened[place] $0 }
		else if ($1 == "lib") {
			kind[$2] = "lib"
			for (i = 3; i <= NF; i++) allowed[$2] = allowed[$2] " " $i
		} else if ($1 == "allow") for (i = 3; i <= NF; i++) allowed[$i] = allowed[$i] " " $2
		else if ($1 == "os" || $1 == "std") for (i = 2; i <= NF; i++) kind[$i] = $1
		else if (NF) bad("unknown word " $1)
		next
	}
	FNR == 1 && !checked++ {
		for (place in pure)
			if (!(place in floor)) bad("tools/floors: pure room " place " stands on no floor")
		for (place in opened) {
			n = split(opened[place], part, " ")
			for (i = 1; i <= n; i++) if (!(part[i] in floor))
				bad("tools/floors: " place " is open to " part[i] \
					", which stands on no floor")
		}
	}
	FNR == 1 {
		outside = FILENAME !~ /^src\//
		test = outside || FILENAME ~ /_test\.c$|\/testing(_[a-z]+)?\.h$/
		path = FILENAME; sub(/^src\//, "", path)
		room = path; sub(/\/.*/, "", room)
		if (!outside && !(room in floor)) bad("room " room " stands on no floor")
	}
	!test && /^(static )?(const )?struct [a-z_0-9]+ \{/ {
		tag = $0; sub(/^(static )?(const )?struct /, "", tag); sub(/ .*/, "", tag)
		if (tag in defined) bad("struct " tag " is defined in " defined[tag] ", too")
		else defined[tag] = FILENAME
	}
	/^#define [A-Z_]+\(X\)/ { table = $2 }
	FILENAME ~ /^src\/(protocol\/message|trace\/event|sys\/failpoint)\.h$/ && /^\tX\(/ {
		split($0, field, /, */)
		if ((table, field[2]) in row_with)
			bad(field[2] " is in row " row_with[table, field[2]] ", too")
		else row_with[table, field[2]] = substr(field[1], 4)
	}
	FNR == 1 || /^static/ { header_of = "" }
	!test && !outside && FILENAME ~ /\.c$/ && FILENAME !~ /(_none|dnnl0|\/main)\.c$/ &&
		/^[a-z][^=;#]*[ *][a-z_0-9]+\(/ && !/^static/ {
		header_of = $0; sub(/\(.*/, "", header_of); sub(/.*[ *]/, "", header_of)
	}
	header_of && /^\{|\) \{/ {
		if (header_of in made && made[header_of] != FILENAME)
			bad("function " header_of " is defined in " made[header_of] ", too")
		made[header_of] = FILENAME; header_of = ""
	}
	header_of && /;$/ { header_of = "" }
	!/^[ \t]*#[ \t]*include[ \t]*[<"]/ { next }
	{
		match($0, /[<"][^>"]*[>"]/)
		header = substr($0, RSTART + 1, RLENGTH - 2)
		n = split(header, part, "/"); to = part[1]
	}
	header ~ /(^|\/)\.\.?(\/|$)/ { bad("\"" header "\" climbs; write \"room/file.h\""); next }
	/"/ && part[n] ~ /^testing(_[a-z]+)?\.h$/ && !test { bad("\"" header "\" is for tests"); next }
	/"/ && to == "tests" { if (!test) bad("\"" header "\" belongs to tests"); next }
	/</ || n == 1 {
		row = row_of(header)
		if (inside(allowed[row], path)) next
		if (!(row in kind)) bad("<" header "> is in no row of tools/floors")
		else if (kind[row] == "os" && room != "sys" && !test)
			bad("<" header "> is for room sys alone")
		else if (kind[row] == "lib" && !(test && row ~ /^hd_/))
			bad("<" header "> may be included by" allowed[row] " alone")
		next
	}
	!(to in floor) { bad("\"" header "\": room " to " stands on no floor"); next }
	n > 2 && to != room && !is_open(header, room) { bad("\"" header "\" is private to room " to); next }
	outside || to == room { next }
	floor[to] > floor[room] || (floor[to] == floor[room] && order[to] > order[room]) {
		bad("\"" header "\" lies above room " room); next
	}
	room in pure && !(to in pure) {
		bad("\"" header "\": room " room " is pure, room " to " is not"); next
	}
	{
		for (place in denied)
			if (under(place, path) && inside(denied[place], to))
				bad("\"" header "\" is denied to " place)
	}
	END { exit failed }' tools/floors || exit 1
