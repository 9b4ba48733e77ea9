#!/bin/bash
# Policies against the best there is on every reference state, stored or found by the oracle of the test
# (src/scheduler/policy/testing_oracle.h). Prints the table of docs/results/reference.md. Nothing is timed.
# Needs HEDDLE_SHARED (data/gavel).
set -eu
cd "$(dirname "$0")/.."
test=${HD_COVERED_TEST:-build/release/scheduler_covered_test}
[ -x "$test" ] || { echo "no program at $test; ./dev build makes it" >&2; exit 2; }
: "${HEDDLE_SHARED:?names the folder with data/gavel}"
echo -n '| policy | A three jobs | B six | C eight, gangs | D thirty |'
echo ' fairness, random | fairness, measured | fifo, random | fifo, measured |'
echo '|---|---|---|---|---|---|---|---|---|'
"$test" 2>&1 | grep '^| '
