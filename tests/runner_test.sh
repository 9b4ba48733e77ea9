#!/bin/bash
# The runner of ./dev test: whatever goes wrong in a test turns the suite red, and the
# closing line counts what happened.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect()        # closing line, exit status, text that must be printed; the suite comes on stdin
{
	cat >"$work/CTestTestfile.cmake"
	if "$source/tools/run_tests.sh" "$work" >"$work/out" 2>&1; then status=0; else status=$?; fi
	[ "$(tail -n 1 "$work/out")" = "$1" ] && [ $status -eq "$2" ] && grep -qF -- "$3" "$work/out" &&
		return
	echo "expected '$1', exit $2, '$3'; got exit $status and:"
	cat "$work/out"
	exit 1
}

expect '1 passed, 0 failed, 0 skipped' 0 'good' <<'END'
add_test(good "/bin/true")
END
expect '1 passed, 1 failed, 0 skipped' 1 '| <said> & "done"' <<'END'
add_test(good "/bin/true")
add_test(always_fails "/bin/sh" "-c" "echo '<said> & \"done\"'; exit 1")
END
expect '0 passed, 1 failed, 0 skipped' 1 'FAILED slow (exceeded its deadline)' <<'END'
add_test(slow "/bin/sleep" "60")
set_tests_properties(slow PROPERTIES TIMEOUT 1)
END
expect '0 passed, 1 failed, 0 skipped' 1 'FAILED missing' <<'END'
add_test(missing "/nonexistent/program")
END
expect '0 passed, 0 failed, 1 skipped' 0 'skipper: no network namespaces here' <<'END'
add_test(skipper "/bin/sh" "-c" "echo no network namespaces here; exit 77")
set_tests_properties(skipper PROPERTIES SKIP_RETURN_CODE 77)
END
expect '2 passed, 0 failed, 1 skipped' 0 'counted: no GPU' <<'END'
add_test(counted "/bin/sh" "-c" "echo '[==========] Running 3 test(s).
skip: no GPU
[==========] 3 test(s) run.
[  PASSED  ] 2 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] on_a_gpu'")
END
expect '1 passed, 0 failed, 2 skipped' 0 'half: no other machines' <<'END'
add_test(half "/bin/sh" "-c" "echo ok - the first half
echo skip: no terminal
echo 'skip: no other machines'")
END
expect '2 passed, 0 failed, 1 skipped' 0 'inside: no third path' <<'END'
add_test(inside "/bin/sh" "-c" "echo 'skip: no third path
[==========] 2 test(s) run.
[  PASSED  ] 2 test(s).'")
END
expect '1 passed, 0 failed, 0 skipped' 0 'slowest tests, s: sleeper 1' <<'END'
add_test(sleeper "/bin/sleep" "1")
END
expect '2 passed, 1 failed, 0 skipped' 1 'FAILED counted' <<'END'
add_test(counted "/bin/sh" "-c" "echo '[==========] 3 test(s) run.
[  PASSED  ] 2 test(s).
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] the_third'; exit 1")
END
expect '3 passed, 1 failed, 0 skipped' 1 'FAILED leaks' <<'END'
add_test(leaks "/bin/sh" "-c" "echo '[==========] 3 test(s) run.
[  PASSED  ] 3 test(s).'; echo LeakSanitizer; exit 1")
END
expect '0 passed, 1 failed, 0 skipped' 1 'no test was run' </dev/null
echo "failures, deadlines, missing programs and skips are counted, those inside a test that passed too"
