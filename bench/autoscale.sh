#!/bin/bash
# Autoscaling policies on known curves: from every start, where they end and what all of it cost, beside the
# best size from the start. Prints the table of docs/results/autoscale.md. Published curves need
# HEDDLE_SHARED. Nothing is timed: steps are looked up.
set -eu
cd "$(dirname "$0")/.."
test=${HD_AUTOSCALE_TEST:-build/release/autoscale_autoscale_test}
[ -x "$test" ] || { echo "no program at $test; ./dev build makes it" >&2; exit 2; }
echo '| curve | objective | curve: end | in all | changes | ae-2020: end | in all | changes |'
echo '|---|---|--:|--:|--:|--:|--:|--:|'
half='end +\+([0-9.]+) %, all +\+([0-9.]+) %, +([0-9]+) changes'
"$test" 2>&1 | sed -n -E \
	"s/^(.*[^ ]) +(time|cost) +curve: $half +ae-2020: $half.*/| \1 | \2 | \3 | \4 | \5 | \6 | \7 | \8 |/p"
