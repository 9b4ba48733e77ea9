#!/usr/bin/env python3
"""evaluate.py MODEL.onnx INPUT.npy LOGITS.npy -- does another reader of ONNX agree with us?

The model must pass onnx.checker (shapes inferred strictly); onnx's own reference evaluator must give
our logits to 1e-5 of the largest."""
import sys
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

model = onnx.load(sys.argv[1])
onnx.checker.check_model(model, full_check=True)
x, ours = np.load(sys.argv[2]), np.load(sys.argv[3])
x = x.reshape([-1] + [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim[1:]])
(theirs,) = ReferenceEvaluator(model).run(None, {"x": x})
theirs = theirs.reshape(ours.shape)
off = np.abs(theirs - ours).max() / np.abs(theirs).max()
print(
    f"{sys.argv[1]}: {len(model.graph.node)} nodes, logits {theirs.shape} differ by {off:.2e} of the largest"
)
sys.exit(0 if off <= 1e-5 else 1)
