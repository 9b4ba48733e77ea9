"""Node cases of ScatterElements and ScatterND, each reduction, as folders under scatter/; results by ONNX's
own evaluator."""

import os

import numpy as np
import onnx
from onnx import helper as h, numpy_helper as nh, TensorProto as T
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(3)
n = 0
for op, shape, ids, axis in (
    ("ScatterElements", (3, 4, 5), (3, 2, 5), 1),
    ("ScatterElements", (6, 2), (4, 2), 0),
    ("ScatterElements", (2, 7), (2, 3), -1),
    ("ScatterND", (5, 3, 2), (3, 1), None),
    ("ScatterND", (5, 3), (2, 2, 1), None),
):
    for how in ("none", "add", "mul", "max", "min"):
        k = shape[axis or 0]
        if how == "none" and op == "ScatterElements":
            i = np.argsort(rng.random(shape), axis=axis).astype(np.int64)[
                tuple(slice(e) for e in ids)
            ] - k * (rng.random(ids) < 0.5)
        elif how == "none":
            i = rng.permutation(k)[:np.prod(ids)].reshape(ids)
        else:
            i = rng.integers(-k, k, ids)
        i = i.astype(np.int64)
        u = rng.standard_normal(ids if op == "ScatterElements" else ids[:-1] + shape[1:]).astype(np.float32)
        x = rng.standard_normal(shape).astype(np.float32)
        at = {"reduction": how} | ({"axis": axis} if axis is not None else {})
        vi = [
            h.make_tensor_value_info(m, t, a.shape)
            for m, t, a in (("x", T.FLOAT, x), ("i", T.INT64, i), ("u", T.FLOAT, u))
        ]
        model = h.make_model(
            h.make_graph(
                [h.make_node(op, ["x", "i", "u"], ["y"], **at)],
                "g",
                vi,
                [h.make_tensor_value_info("y", T.FLOAT, shape)],
            ),
            opset_imports=[h.make_opsetid("", 18)],
            ir_version=8,
        )
        onnx.checker.check_model(model)
        y = ReferenceEvaluator(model).run(None, {"x": x, "i": i, "u": u})[0]
        d = f"scatter/test_{op.lower()}_{how}_{n}/test_data_set_0"
        n += 1
        os.makedirs(d)
        open(d + "/../model.onnx", "wb").write(model.SerializeToString())
        for j, (m, a) in enumerate((("x", x), ("i", i), ("u", u))):
            open(f"{d}/input_{j}.pb", "wb").write(nh.from_array(a, m).SerializeToString())
        open(d + "/output_0.pb", "wb").write(nh.from_array(y.astype(np.float32), "y").SerializeToString())
