#!/bin/bash
# Which law each policy promises, from the table that the test walks. Prints the tables of
# docs/results/laws.md. Nothing is timed.
set -eu
cd "$(dirname "$0")/.."
test=${HD_PROMISED_TEST:-build/release/scheduler_promised_test}
[ -x "$test" ] || { echo "no program at $test; ./dev build makes it" >&2; exit 2; }
"$test" 2>&1 | grep -E '^(\| |\|--|$)'
