#!/usr/bin/env python3
"""onnx_modules.py [--keep FOLDER] [--list] [NAME...]: are modules of PyTorch, exported, trained as there?

Each module is written by both exporters of PyTorch, with a batch that is traced and with one that is free, in
several opsets. Heddle (HEDDLE_BIN, default build/release/heddle) imports the file and takes one step of SGD
with rate 1 on a batch: the parameters before less those after are the gradients. They, and the logits,
are compared with PyTorch's in f64, each to 1e-5 of the largest number of its tensor, and of all gradients.
What the importer refuses must name the node. A file says nothing of `padding_idx`, the row of a table that
PyTorch gives no gradient: it learns here, and is not compared. Prints the table of
docs/results/onnx-modules.md; exit 1: something was neither equal nor refused. --keep: files stay in FOLDER,
and are taken from there next time."""

import sys

sys.path.pop(0)  # tokenize.py beside this file is not Python's
import argparse, itertools, os, pathlib, platform, shutil, subprocess, tempfile, time, warnings
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from onnx_modules_layers import CASES, Whole
import onnx_modules_models  # adds its cases

warnings.simplefilter("ignore")
TOLERANCE = 1e-5
# the file's name, how it is exported, opset, is the batch free
VARIANTS = [
    ("script-13", {"dynamo": False}, 13, True),
    ("script-17", {"dynamo": False}, 17, False),
    ("script-20", {"dynamo": False}, 20, True),
    ("export-18", {"dynamo": True}, 18, False),
    ("export-22", {"dynamo": True, "optimize": False}, 22, True),
]


def build(name):
    make, shape, ids, rows = CASES[name]
    torch.manual_seed(7)
    model = Whole(make(), shape, ids)
    rng = np.random.default_rng(3)
    x = (
        rng.integers(0, ids, (rows, *shape))
        if ids
        else rng.standard_normal((rows, *shape)).astype(np.float32)
    )
    return model, torch.from_numpy(x)


def truth(model, x):
    """Logits and gradients of the loss of PyTorch, in f64."""
    model = model.double().train()
    x = x if x.dtype == torch.int64 else x.double()
    y = model(x)
    labels = torch.arange(x.shape[0]) % y.shape[1]
    F.cross_entropy(y, labels).backward()
    grad = {
        k: p.grad.numpy() if p.grad is not None else np.zeros(tuple(p.shape))
        for k, p in model.named_parameters()
    }
    with torch.no_grad():
        return model.eval()(x).numpy(), grad, labels.int().numpy()


def export(model, x, path, how, opset, free):
    if how["dynamo"]:
        free = dict(dynamic_shapes=({0: torch.export.Dim("n")},) if free else None)
        how = dict(how, external_data=False, verbose=False, **free)
        model.eval()
    else:
        free = dict(dynamic_axes={"x": {0: "n"}} if free else None)
        how = dict(how, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, **free)
        model.train()
    with open(os.devnull, "w") as null:
        keep, sys.stdout = sys.stdout, null
        try:
            torch.onnx.export(
                model, (x,), path, input_names=["x"], output_names=["logits"], opset_version=opset, **how
            )
        finally:
            sys.stdout = keep


def heddle(*args):
    ran = subprocess.run(
        [os.environ.get("HEDDLE_BIN", "build/release/heddle"), *map(str, args)],
        capture_output=True,
        text=True,
    )
    return ran.returncode, (ran.stderr or ran.stdout).strip()


def evaluated(model, x, held):
    """Logits of PyTorch after a step that moves running statistics alone, from those of the file."""
    model = model.double().train()
    for name, buffer in model.named_buffers():
        if name in held:
            buffer.copy_(torch.from_numpy(held[name]))
    with torch.no_grad():
        x = x if x.dtype == torch.int64 else x.double()
        model(x)
        return model.eval()(x).numpy()


def off(ours, theirs, least=0.0):
    most = max(float(np.abs(theirs).max()), least, 1e-30)
    return float(np.abs(ours - theirs).max()) / most if np.isfinite(ours).all() else float("inf")


def same_values(before, left, values):
    """A parameter that the exporter stored in another shape and under another name."""
    return [
        k
        for k in left
        if before[k].size == values.size and np.array_equal(np.sort(before[k], None), np.sort(values, None))
    ]


def turned(values, stored, g):
    """The gradient in the orders of axes in which the exporter may have stored the values."""
    return [
        g.transpose(axes).reshape(stored.shape)
        for axes in itertools.permutations(range(g.ndim))
        if np.array_equal(values.transpose(axes).reshape(stored.shape), stored)
    ]


def left_out(model):
    """Rows of tables that PyTorch gives no gradient: {parameter: row}."""
    return {
        f"{name}.weight": part.padding_idx
        for name, part in model.named_modules()
        if getattr(part, "padding_idx", None) is not None
    }


def compare(folder, path, name, x, logits, grad, begin, padded):
    """(verdict, what): equal and the largest distance; refused and why; wrong and where."""
    code, said = heddle("model", "import", path, "-o", folder / "in", "-q")
    if code:
        return ("refused" if code == 3 and "'" in said else "wrong"), said.splitlines()[-1].split(
            ".onnx: ", 1
        )[-1]
    keys = (
        "job.steps=1 data.kind=npy batch.global=%d batch.virtual_nodes=1 optim.kind=sgd "
        "optim.schedule.kind=constant optim.schedule.warmup=0 optim.clip=0"
        % logits.shape[0]
    )
    sets = [w for k in keys.split() for w in ("-s", k)] + ["-s", f"data.path={folder / 'data'}"]
    for rate in (0, 1):
        code, said = heddle(
            "run",
            folder / "in" / "job.yaml",
            *sets,
            "-s",
            f"optim.lr={rate}",
            "--out",
            folder / f"run{rate}",
            "-q",
        )
        if code:
            return "wrong", said
    code, said = heddle("predict", folder / "run0", "--split", "train", "-o", folder / "p.npy", "-q")
    if code:
        return "wrong", said
    before = load_file(folder / "in" / "model.safetensors")
    if any(k.endswith("running_mean") for k in before):
        logits = evaluated(build(name)[0], x, before)
    worst, where = off(np.load(folder / "p.npy").reshape(logits.shape), logits), "logits"
    after = load_file(folder / "run1/ckpt/step-000000001/model.safetensors")
    scale = max(float(np.abs(g).max()) for g in grad.values())
    left = set(before)
    for name, g in grad.items():
        if not np.abs(g).max() > 0:
            continue
        ours = [k for k in before if k.lstrip("_") == name] or same_values(before, left, begin[name])
        if not ours:
            return "wrong", f"there is no parameter {name}"
        left.discard(ours[0])
        moved = before[ours[0]].astype(np.float64) - after[ours[0]]
        if name in padded:
            moved[padded[name]] = g[padded[name]]
        ways = turned(begin[name], before[ours[0]], g)
        if not ways:
            return "wrong", f"{ours[0]} is {name} in no order of its axes"
        distance = min(off(moved, way, scale) for way in ways)
        if distance > worst:
            worst, where = distance, name
    return ("equal" if worst <= TOLERANCE else "wrong"), f"{worst:.1e} {where}"


def judge(name, keep):
    """One module in all variants: [(variant, verdict, what)]."""
    at = keep / name.replace(" ", "_").replace("/", "_")
    at.mkdir(parents=True, exist_ok=True)
    (at / "data").mkdir(exist_ok=True)
    model, x = build(name)
    logits, grad, labels = truth(*build(name))
    np.save(at / "data" / "x.npy", x.numpy().astype(np.int32) if x.dtype == torch.int64 else x.numpy())
    np.save(at / "data" / "y.npy", labels)
    for variant, how, opset, free in VARIANTS:
        path, lost = at / f"{variant}.onnx", at / f"{variant}.no"
        if not path.exists() and not lost.exists():
            try:
                export(build(name)[0], x, path, how, opset, free)
            except Exception as why:
                lost.write_text(
                    str(why).strip().splitlines()[0][:200] if str(why).strip() else type(why).__name__
                )
                path.unlink(missing_ok=True)
        if lost.exists():
            yield variant, "not exported", lost.read_text()
            continue
        for old in ("in", "run0", "run1"):
            shutil.rmtree(at / old, ignore_errors=True)
        begin = {k: p.detach().numpy() for k, p in model.named_parameters()}
        yield variant, *compare(at, path, name, x, logits, grad, begin, left_out(model))


def words(results):
    count = {}
    for _, verdict, _ in results:
        count[verdict] = count.get(verdict, 0) + 1
    return ", ".join(f"{v} {n}" for v, n in count.items())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--keep")
    p.add_argument("--list", action="store_true")
    p.add_argument("--only", help="variants, with commas between")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    if args.only:
        VARIANTS[:] = [v for v in VARIANTS if v[0] in args.only.split(",")]
    keep = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="onnx-modules-"))
    names = [n for n in CASES if not args.names or any(n.startswith(a) for a in args.names)]
    total, rows, bad = {}, [], False
    try:
        for name in names:
            results = list(judge(name, keep))
            for variant, verdict, what in results:
                total[verdict] = total.get(verdict, 0) + 1
                bad = bad or verdict == "wrong"
                if args.list or verdict == "wrong":
                    print(f"{name} [{variant}]: {verdict}: {what[:300]}", file=sys.stderr, flush=True)
            why = sorted({w for _, v, w in results if v in ("refused", "wrong")})
            errors = [float(w.split()[0]) for _, v, w in results if v == "equal"]
            rows.append(
                f"| {name} | {words(results)} | {max(errors):.1e} |"
                if errors
                else f"| {name} | {words(results)} | |"
            )
            if why:
                rows[-1] = rows[-1][:-1] + f" {why[0][:160]} |"
            else:
                rows[-1] += " |"
    finally:
        if not args.keep:
            shutil.rmtree(keep)
    import onnx

    cpu = next(
        (l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")),
        platform.machine(),
    )
    print(f"```\n# {time.strftime('%Y-%m-%d')} {cpu}, PyTorch {torch.__version__}, onnx {onnx.__version__}")
    print(
        f"modules: {len(names)}, files {sum(total.values())}: "
        + ", ".join(f"{k} {v}" for k, v in sorted(total.items()))
        + "\n```\n"
    )
    print("| module | files | largest distance | why not |\n|---|---|---|---|")
    print("\n".join(rows))
    return bad


if __name__ == "__main__":
    sys.exit(main())
