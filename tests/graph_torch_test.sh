#!/bin/bash
# Gradients of random graphs (src/device/property_test.c) against PyTorch in f64; and a wrong one is seen.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
python=${HEDDLE_PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
	echo "skip: $python has no torch (set HEDDLE_PYTHON to an interpreter that has it)"
	exit 77
fi
test=${BUILD_DIR:-.}/device_property_test
if ! [ -x "$test" ]; then
	echo "skip: $test is not built"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
HD_PROPERTY_OUT=$work "$test" >/dev/null 2>&1 || { echo "$test fails"; exit 1; }
"$python" "$source/tests/torch/graph_torch.py" "$work"

# negative control: another weight in every graph
sed -i '/^grad /s/ [^ ]*$/ 77/' "$work"/*.numbers
if "$python" "$source/tests/torch/graph_torch.py" "$work" >/dev/null; then
	echo "a wrong gradient was not seen"
	exit 1
fi
