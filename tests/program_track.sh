#!/bin/bash
# ResNet-18 for CIFAR at full width, 64 images a step: ten losses against PyTorch's, norms over the whole
# batch.
. "$(dirname "$0")/program.sh"
python=${HEDDLE_PYTHON:-python3}
"$python" -c 'import torch, safetensors' 2>/dev/null || {
	echo "skip: $python has no torch and safetensors (set HEDDLE_PYTHON to an interpreter that has them)"
	exit 77
}
job=$SOURCE_DIR/bench/jobs/resnet18.yaml

# Plain SGD at a low rate: steps beyond it leave each other in any f32 arithmetic, PyTorch's own two layouts
# too.
steps()
{
	expect 0 heddle bench step "$job" --devices "$1" --threads 1 --repeat "$2" \
		--json -q --save problem.safetensors -s optim.kind=sgd -s optim.lr=1e-3 \
		-s optim.weight_decay=0 "${@:3}"
}
tracks()
{
	OMP_WAIT_POLICY=passive "$python" "$SOURCE_DIR/tests/torch/track.py" problem.safetensors out 1e-4 \
		>tracked 2>&1
}

steps 2 7 -s model.bn=global
same "$(tr ',' '\n' <out | sed -n '/"losses"/,/]/p' | wc -l)" 10 "losses"
tracks || failed "8 virtual nodes with norms over the global batch: $(cat tracked)"
passed "norms over the global batch: $(tail -n 1 tracked)"
steps 1 7 -s batch.virtual_nodes=1 -s batch.global=32
tracks || failed "one virtual node: $(cat tracked)"
passed "one virtual node: $(tail -n 1 tracked)"
steps 2 1 -s model.bn=ghost -s batch.global=32
! tracks || failed "norms of 4 rows each pass for those of 32: $(cat tracked)"
passed "other norms are seen"
