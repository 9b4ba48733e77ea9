#!/bin/bash
# The gradients in the golden graphs are those of their forward halves, by differences in
# f64 (an oracle in Python that shares no code with the program); and a wrong one is seen.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
python=${HEDDLE_PYTHON:-python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
	echo "skip: $python has no numpy (set HEDDLE_PYTHON to an interpreter that has it)"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" "$source/tests/golden_gradients.py" "$source"/src/graph/golden/*-trained.graph

# negative control: half a gradient
sed 's/= scale \(%[0-9]*\) by=0.25 stage=1 phase=I/= scale \1 by=0.125 stage=1 phase=I/' \
	"$source/src/graph/golden/gpt-trained.graph" >"$work/wrong.graph"
if "$python" "$source/tests/golden_gradients.py" "$work/wrong.graph" >/dev/null; then
	echo "a wrong gradient was not seen"
	exit 1
fi
