#!/bin/bash
# Runs the tests of a configured build folder and counts them one by one.
#
#   tools/run_tests.sh BUILD_DIR [ctest arguments...]
#
# A cmocka program counts as many tests as it ran; any other test counts as one. A
# program that dies or exceeds its deadline counts as one failure more than it
# reported, one whose executable is missing as a failure. Each line "skip: REASON" of a
# test counts as one skip, also where the rest of the test ran and passed; a test that
# was skipped without such a line gives the last line it printed as its reason. Skips are
# listed with their reasons, failures with the end of their output, and the slowest tests
# with their seconds. The last line of stdout is `N passed, N failed, N skipped`; exit 0
# only if nothing failed and at least one test passed or was skipped.
set -eu -o pipefail

build=$1
shift
report=$(realpath "$build")/junit.xml
log=$(realpath "$build")/ctest.log
rm -f "$report"
status=0
ctest --test-dir "$build" --output-junit "$report" --no-tests=error \
	--test-output-size-passed 1048576 --test-output-size-failed 1048576 \
	--parallel "${HD_JOBS:-$(nproc)}" "$@" 2>&1 | tee "$log" | grep -E '^ *[0-9]+/[0-9]+ ' ||
	status=${PIPESTATUS[0]}
if [ ! -s "$report" ]; then
	echo "no test was run (ctest exit $status): $build $*" >&2
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
fi

awk -v ctest_status="$status" '
	FNR == NR {                             # the log: the report does not say which tests were stopped
		if ($0 ~ /\*\*\*Timeout/ && match($0, /Test +#[0-9]+: [^ ]+/)) {
			name = substr($0, RSTART, RLENGTH); sub(/.*: /, "", name); late[name] = 1
		}
		next
	}
	function plain(text) {
		gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text)
		gsub(/&apos;/, "\047", text); gsub(/&amp;/, "\\&", text)
		return text
	}
	function attribute(line, key) {
		if (!match(line, " " key "=\"[^\"]*\"")) return ""
		return substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
	}
	function number(line) { match(line, /[0-9]+ test/); return substr(line, RSTART, RLENGTH) + 0 }
	function start(line) {
		name = plain(attribute(line, "name")); state = attribute(line, "status")
		counted = ok = bad = skips = nlines = refused = nsaid = 0; said = ""
		seconds[name] = attribute(line, "time") + 0
	}
	function take(line) {
		line = plain(line)
		if (line !~ /^[ \t]*$/) { tail[nlines++ % 80] = line; last = line }
		if (line ~ /^\[==========\].* test\(s\) run/) counted = 1
		if (line ~ /^\[  PASSED  \] [0-9]+ test/) ok += number(line)
		if (line ~ /^\[  SKIPPED \] [0-9]+ test/) skips += number(line)
		if (line ~ /^\[  FAILED  \] [0-9]+ test/) bad += number(line)
		if (line ~ /^skip: / && ++nsaid) said = said "\n  " name ": " substr(line, 7)
	}
	function finish() {
		if (state == "fail" || (state != "run" && !refused)) {
			if (!counted || !bad) bad++
			if (!counted) { ok = 0; skips = 0 }
			failures = failures "\nFAILED " name
			failures = failures (name in late ? " (exceeded its deadline)" : "") "\n"
			for (i = nlines > 80 ? nlines - 80 : 0; i < nlines; i++)
				failures = failures "  | " tail[i % 80] "\n"
		} else if (state != "run") {
			skips = nsaid ? nsaid : 1; ok = bad = 0
			if (said == "") said = "\n  " name ": " (nlines ? last : "gave no reason")
		} else {
			if (!counted) ok = 1
			if (nsaid > skips) skips = nsaid
		}
		if (skips && said == "") said = "\n  " name ": " skips " without a reason"
		passed += ok; failed += bad; skipped += skips; programs++
		if (skips) reasons = reasons said
	}
	/<testcase / { start($0); inside = 1 }
	inside && /<skipped message="SKIP_RETURN_CODE/ { refused = 1 }
	inside && /<system-out>/ { reading = 1; sub(/.*<system-out>/, "") }
	reading {
		done = sub(/<\/system-out>.*/, "")
		take($0)
		if (done) reading = 0
	}
	/<\/testcase>/ { if (inside) finish(); inside = 0 }
	function slowest(    n, name, best, list) {             # of a second and more
		for (n = 0; n < 10; n++) {
			best = ""
			for (name in seconds)
				if (seconds[name] >= 1 && (best == "" || seconds[name] > seconds[best]))
					best = name
			if (best == "") break
			list = list sprintf("%s%s %.0f", n ? ", " : "", best, seconds[best])
			delete seconds[best]
		}
		if (list != "") print "slowest tests, s: " list
	}
	END {
		slowest()
		if (reasons != "") print "skipped:" reasons
		if (failures != "") printf "%s", failures
		if (!programs) { print "no test was run"; failed = 1 }
		if (ctest_status != 0 && !failed) {
			print "ctest ended with " ctest_status " although no test failed"
			failed++
		}
		printf "%d test programs\n", programs
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
		exit failed != 0
	}' "$log" "$report"
