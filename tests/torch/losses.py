#!/usr/bin/env python3
"""losses.py -- PyTorch's losses and scikit-learn's metrics, as files for src/engine/losses_test.c and
measure_test.c.

One small net; for each case a job file and what PyTorch makes of it in ten steps of SGD: each loss, the
gradient of the first step, all parameters at the end. For each set of outputs and targets what scikit-learn
counts. In float32 on the CPU. Run where both are installed:  python3 losses.py [FOLDER]
The files committed beside this script were made by PyTorch 2.13.0 and scikit-learn 1.9.1.
"""

import os, sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

STEPS, BATCH, COUNT, IN, OUT = 10, 16, 48, 12, 5
CLASS_WEIGHTS, POS_WEIGHTS = [0.5, 2.0, 1.25, 0.0, 3.0], [1.0, 3.0, 0.5, 2.0, 0.25]
W, P = torch.tensor(CLASS_WEIGHTS), torch.tensor(POS_WEIGHTS)
HALF = torch.tensor([2.5])

# name: what y is; model.loss; the table loss; PyTorch's function of logits and y
CASES = {
    "smoothing": (
        "classes", "cross-entropy", "smoothing: 0.1",
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
    ),
    "weights": (
        "classes", "cross-entropy", f"class_weights: {CLASS_WEIGHTS}",
        lambda x, y: F.cross_entropy(x, y, W),
    ),
    "ignore": (
        "ignored", "cross-entropy", "ignore: -100",
        lambda x, y: F.cross_entropy(x, y, ignore_index=-100),
    ),
    "ignore_class": (
        "classes", "cross-entropy", "ignore: 2",
        lambda x, y: F.cross_entropy(x, y, ignore_index=2),
    ),
    "all": (
        "ignored",
        "cross-entropy",
        f"smoothing: 0.2, class_weights: {CLASS_WEIGHTS}, ignore: -100",
        lambda x, y: F.cross_entropy(x, y, W, label_smoothing=0.2, ignore_index=-100),
    ),
    "soft": ("shares", "soft-cross-entropy", "", lambda x, y: F.cross_entropy(x, y)),
    "soft_all": (
        "shares",
        "soft-cross-entropy",
        f"smoothing: 0.1, class_weights: {CLASS_WEIGHTS}",
        lambda x, y: F.cross_entropy(x, y, W, label_smoothing=0.1),
    ),
    "one_hot": (
        "classes", "soft-cross-entropy", "smoothing: 0.1",
        lambda x, y: F.cross_entropy(x, F.one_hot(y, OUT).float(), label_smoothing=0.1),
    ),
    "kl": ("shares", "kl", "", lambda x, y: F.kl_div(F.log_softmax(x, 1), y, reduction="batchmean")),
    "bce": ("labels", "bce", "", lambda x, y: F.binary_cross_entropy_with_logits(x, y)),
    "bce_pos": (
        "labels",
        "bce",
        f"pos_weight: {POS_WEIGHTS}",
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=P),
    ),
    "bce_one_pos": (
        "labels",
        "bce",
        "pos_weight: [2.5]",
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=HALF),
    ),
    "mse": ("numbers", "mse", "", lambda x, y: F.mse_loss(x, y)),
    "l1": ("numbers", "l1", "", lambda x, y: F.l1_loss(x, y)),
    "smooth_l1": ("numbers", "smooth-l1", "delta: 0.5", lambda x, y: F.smooth_l1_loss(x, y, beta=0.5)),
    "huber": ("numbers", "huber", "delta: 0.75", lambda x, y: F.huber_loss(x, y, delta=0.75)),
}

# name: the data; the list loss; for each term its weight and PyTorch's function of logits and fields
SUMS = {
    "sum": (
        "several",
        "{kind: cross-entropy, smoothing: 0.1}, {kind: kl, weight: 0.5, target: teacher}, "
        "{kind: huber, weight: 0.25, target: goal, delta: 0.75}",
        [
            (1, lambda x, f: F.cross_entropy(x, f["y"].long(), label_smoothing=0.1)),
            (0.5, lambda x, f: F.kl_div(F.log_softmax(x, 1), f["teacher"], reduction="batchmean")),
            (0.25, lambda x, f: F.huber_loss(x, f["goal"], delta=0.75)),
        ],
    ),
    "sum_of_one_target": (
        "labels",
        "{kind: bce, weight: 2}, {kind: mse, weight: 0.125}",
        [
            (2, lambda x, f: F.binary_cross_entropy_with_logits(x, f["y"])),
            (0.125, lambda x, f: F.mse_loss(x, f["y"])),
        ],
    ),
}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(IN, 9), nn.Linear(9, OUT)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def targets(rng):
    classes = rng.integers(0, OUT, COUNT).astype(np.int32)
    ignored = np.where(rng.random(COUNT) < 0.3, -100, classes).astype(np.int32)
    shares = rng.random((COUNT, OUT)).astype(np.float32) ** 3
    shares[rng.random((COUNT, OUT)) < 0.3] = 0
    shares[:, 1] += 1e-3
    shares /= shares.sum(1, keepdims=True)
    return {
        "classes": classes,
        "ignored": ignored,
        "shares": shares,
        "labels": (rng.random((COUNT, OUT)) < 0.4).astype(np.float32),
        "numbers": (2 * rng.standard_normal((COUNT, OUT))).astype(np.float32),
    }


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors]).clone()


def of_target(y):
    return y.long() if y.dtype == torch.int32 else y


def losses(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(11)
    x, y = rng.standard_normal((COUNT, IN)).astype(np.float32), targets(rng)
    for name, what in y.items():
        os.makedirs(os.path.join(out, name), exist_ok=True)
        np.save(os.path.join(out, name, "x.npy"), x)
        np.save(os.path.join(out, name, "y.npy"), what)
    fields = {name: {"y": what} for name, what in y.items()}
    fields["several"] = {"y": y["classes"], "teacher": y["shares"], "goal": y["numbers"]}
    os.makedirs(os.path.join(out, "several"), exist_ok=True)
    for name, what in {"x": x, **fields["several"]}.items():
        np.save(os.path.join(out, "several", name + ".npy"), what)
    torch.manual_seed(3)
    begin, made = Mlp(), {}
    save_file({k: v.detach() for k, v in begin.named_parameters()}, os.path.join(out, "begin.safetensors"))
    cases = {
        name: (
            of, f", loss: {word}", f"{{{options}}}" if options else "",
            [(1, lambda x, f, loss=loss: loss(x, of_target(f["y"])))],
        )
        for name, (of, word, options, loss) in CASES.items()
    }
    cases |= {name: (of, "", f"[{terms}]", loss) for name, (of, terms, loss) in SUMS.items()}
    for name, (of, word, options, terms) in cases.items():
        model = Mlp()
        model.load_state_dict(begin.state_dict())
        optim, seen, single = torch.optim.SGD(model.parameters(), lr=0.1), [], []
        for s in range(STEPS):
            at = [(s * BATCH + i) % COUNT for i in range(BATCH)]
            rows = {f: torch.from_numpy(what[at]) for f, what in fields[of].items()}
            logits = model(torch.from_numpy(x[at]))
            each = [loss(logits, rows) for _, loss in terms]
            value = sum(weight * one for (weight, _), one in zip(terms, each))
            optim.zero_grad()
            value.backward()
            if s == 0:
                made[name + ".grad"] = flat(p.grad for p in model.parameters())
            optim.step()
            seen.append(value.item())
            single.append([one.item() for one in each])
        if name in SUMS:
            made[name + ".terms"] = torch.tensor(single, dtype=torch.float64)
        made[name + ".loss"] = torch.tensor(seen, dtype=torch.float64)
        made[name + ".end"] = flat(model.parameters())
        with open(os.path.join(out, name + ".yaml"), "w") as f:
            f.write(
                f"job: {{steps: {STEPS}}}\n"
                f"model: {{use: builtin:mlp, args: {{input: [{IN}], hidden: [9], classes: {OUT}, "
                f"act: tanh}}{word}}}\n"
                + (f"loss: {options}\n" if options else "")
                + "data: {kind: npy, order: sequential, split: {train: 1.0, valid: 0.0}}\n"
                f"batch: {{global: {BATCH}, virtual_nodes: 4}}\n"
                "optim: {kind: sgd, lr: 0.1, clip: 0, schedule: {kind: constant, warmup: 0}}\n"
            )
    save_file(made, os.path.join(out, "expect.safetensors"))


MEASURES = (
    ["top-2", "top-3", "top-5", "top-10"]
    + [f"{s}-{a}" for s in ("precision", "recall", "f1") for a in ("macro", "micro", "binary")]
    + ["auroc", "mae", "mse", "r2", "accuracy"]
)


def scored(m, y, p, averages):
    from sklearn import metrics as sk

    for short, of in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
        for a in averages:
            m[f"{short}-{a}"] = of(y, p, average=a, zero_division=0)
    m["accuracy"] = sk.accuracy_score(y, p)


def measured(outputs, y, kind):
    from sklearn import metrics as sk

    x, m = outputs.astype(np.float64), {}
    if kind == "numbers":
        m["mae"], m["mse"] = sk.mean_absolute_error(y, x), sk.mean_squared_error(y, x)
        m["r2"] = sk.r2_score(y, x)
    elif kind == "one":
        scored(m, y[:, 0] > 0.5, x[:, 0] > 0, ("macro", "micro", "binary"))
        m["auroc"] = sk.roc_auc_score(y[:, 0] > 0.5, x[:, 0])
    elif kind == "labels":
        scored(m, y > 0.5, x > 0, ("macro", "micro"))
        m["auroc"] = sk.roc_auc_score(y, x, average="macro")
    else:
        keep = y >= 0
        x, y, c = x[keep], y[keep], x.shape[1]
        scored(m, y, x.argmax(1), ("macro", "micro") + (("binary",) if c == 2 else ()))
        p = torch.softmax(torch.from_numpy(outputs[keep]), 1).numpy()
        if c == 2:
            m["auroc"] = sk.roc_auc_score(y, p[:, 1])
        elif len(np.unique(y)) == c:
            m["auroc"] = sk.roc_auc_score(y, p / p.sum(1, keepdims=True), multi_class="ovr", average="macro")
        for k in (2, 3, 5, 10):
            m[f"top-{k}"] = sk.top_k_accuracy_score(y, x, k=k, labels=range(c)) if k < c and c > 2 else 1.0
    return [m.get(name, np.nan) for name in MEASURES]


def measures(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(5)
    made = {}

    def add(name, outputs, y, kind="classes"):
        outputs = outputs.astype(np.float32)
        made[name + ".outputs"] = torch.from_numpy(outputs.copy())
        made[name + ".targets"] = torch.from_numpy(y.copy())
        made[name + ".want"] = torch.tensor(measured(outputs, y, kind), dtype=torch.float64)

    def classes(n, c, skill):
        y = rng.integers(0, c, n).astype(np.int32)
        return rng.standard_normal((n, c)) + skill * np.eye(c)[y], y

    x, y = classes(211, 7, 1.5)
    add("seven", x, y)
    masked = np.where(rng.random(len(y)) < 0.2, -1, y).astype(np.int32)
    add("masked", x, masked)
    x, y = classes(97, 12, 1.0)
    add("twelve", x, y)
    add("absent", x, np.where(y < 3, 3, y).astype(np.int32))
    x, y = classes(150, 2, 1.0)
    add("two", x, y)
    add("ties", np.round(x), y)
    add("one", np.round(2 * x[:, :1]) / 2, (y[:, None] == 0).astype(np.float32), "one")
    labels = (rng.random((130, 6)) < 0.3).astype(np.float32)
    add("labels", np.round(4 * (rng.standard_normal((130, 6)) + labels)) / 4, labels, "labels")
    never = labels.copy()
    add("shy", rng.standard_normal((130, 6)) - np.array([9, 0, 0, 0, 0, 0]), never, "labels")
    numbers = rng.standard_normal((83, 3)).astype(np.float32) * [1, 10, 0.1] + [0, 1000, 3]
    add("numbers", numbers + 0.3 * rng.standard_normal((83, 3)), numbers.astype(np.float32), "numbers")
    flat_ = numbers.copy()
    flat_[:, 1] = 7
    add("constant", numbers, flat_.astype(np.float32), "numbers")
    met = numbers.astype(np.float32)
    met[:, 1] = 7
    add("met", np.where([False, True, False], met, numbers + 0.1), met, "numbers")
    save_file(made, os.path.join(out, "measures.safetensors"))


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "fixtures")
    losses(os.path.join(where, "losses"))
    measures(os.path.join(where, "losses"))
