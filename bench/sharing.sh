#!/bin/bash
# Sharing by resize against gangs: 20 jobs on 8 devices, 100 seeds, two curves fixed in
# src/clustersim/schedsim/sharing_test.c. Prints the table of docs/results/sharing.md. Nothing is timed: the
# cluster is simulated.
set -eu
cd "$(dirname "$0")/.."
test=${HD_SHARING_TEST:-build/release/clustersim_sharing_test}
[ -x "$test" ] || { echo "no program at $test; ./dev build makes it" >&2; exit 2; }
echo -n '| curve | policy | makespan min | % | median JCT min | % | mean JCT min | % | waits min |'
echo ' computing % | over the bound % | worst job | resizes a job |'
echo '|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|'
HD_SHARING_SEEDS=${1:-100} "$test" 2>&1 | grep '^| '
