#!/usr/bin/env python3
"""make_fixtures.py -- models that PyTorch exported for training, as files for tests/onnx_torch_test.c.

For each: model.onnx (TorchScript exporter, training mode, no constant folding), a job, a data set, and
what PyTorch computes: logits of the first rows before the first step and the losses of ten SGD steps.
Run where PyTorch and onnx are installed:  python3 make_fixtures.py [FOLDER [MODEL...]]
The files committed beside this script were made by PyTorch 2.15.0; sdpa, encoder, lstm, gru,
windows and ways by 2.13.0, label, norms, fresh and lost.onnx by 2.14.1.
"""
import os, sys, warnings
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.numpy import save_file

STEPS, BATCH, COUNT = 10, 8, 16
RATE = {"resnet": 0.003}  # moments of a few numbers make larger steps chaotic: f32 leaves f64 too; 0.05 else


def mlp():
    return (
        nn.Sequential(nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 7), nn.Tanh(), nn.Linear(7, 4)),
        "images",
        4,
        (12,),
    )


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 5, padding=2), nn.Conv2d(4, 6, 3)
        self.fc1, self.fc2 = nn.Linear(24, 10), nn.Linear(10, 5)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.conv1(x)), 2)
        h = F.max_pool2d(F.relu(self.conv2(h)), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(h, 1))))


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        h = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(h + (x if self.down is None else self.down(x)))


class Resnet(nn.Module):
    """ResNet-18's plan, four channels wide."""

    def __init__(self, c=4):
        super().__init__()
        self.conv1, self.bn1, self.pool = (
            nn.Conv2d(3, c, 3, 1, 1, bias=False),
            nn.BatchNorm2d(c),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, width = [], c
        for i, out in enumerate((c, 2 * c, 2 * c, 2 * c)):
            blocks += [Block(width, out, 1 if i == 0 else 2), Block(out, out, 1)]
            width = out
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(width, 5)

    def forward(self, x):
        h = self.blocks(self.pool(F.relu(self.bn1(self.conv1(x)))))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(h, 1), 1))


class Gpt(nn.Module):
    """A decoder with learned positions, GELU by erf, heads by view and transpose: as people write it."""
    T, C, H, V, L = 6, 12, 3, 17, 2

    def __init__(self):
        super().__init__()
        C = self.C
        self.wte, self.wpe = nn.Embedding(self.V, C), nn.Embedding(self.T, C)
        self.ln1, self.ln2 = (nn.ModuleList(nn.LayerNorm(C) for _ in range(self.L)) for _ in range(2))
        self.qkv = nn.ModuleList(nn.Linear(C, 3 * C) for _ in range(self.L))
        self.out = nn.ModuleList(nn.Linear(C, C) for _ in range(self.L))
        self.up = nn.ModuleList(nn.Linear(C, 4 * C) for _ in range(self.L))
        self.down = nn.ModuleList(nn.Linear(4 * C, C) for _ in range(self.L))
        self.lnf, self.head = nn.LayerNorm(C), nn.Linear(C, self.V, bias=False)

    def attend(self, x, i):
        B, T, C = x.size()
        q, k, v = self.qkv[i](x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.H, C // self.H).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / (C // self.H) ** 0.5)
        mask = torch.tril(torch.ones(T, T)).view(1, 1, T, T)
        y = F.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=-1) @ v
        return self.out[i](y.transpose(1, 2).contiguous().view(B, T, C))

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)))
        for i in range(self.L):
            x = x + self.attend(self.ln1[i](x), i)
            x = x + self.down[i](F.gelu(self.up[i](self.ln2[i](x))))
        return self.head(self.lnf(x))


class Sdpa(Gpt):
    """The same, attention by the function for it; every block makes its own mask."""

    def attend(self, x, i):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.H, C // self.H).transpose(1, 2) for t in self.qkv[i](x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out[i](y.transpose(1, 2).contiguous().view(B, T, C))


class Encoder(nn.Module):
    """Attention that sees all, over numbers, as BERT has it."""
    T, C, H = 5, 8, 2

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(self.C, self.C) for _ in range(4))
        self.norm, self.head = nn.LayerNorm(self.C), nn.Linear(self.C, 5)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (f(x).view(B, T, self.H, C // self.H).transpose(1, 2) for f in (self.q, self.k, self.v))
        p = F.softmax(q @ k.transpose(-2, -1) / (C // self.H) ** 0.5, dim=-1)
        x = self.norm(x + self.out((p @ v).transpose(1, 2).reshape(B, T, C)))
        return self.head(x[:, 0])


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cells, self.fc = cell(6, 7, 2, batch_first=True), nn.Linear(7, 5)

    def forward(self, x):
        return self.fc(self.cells(x)[0][:, -1])


class Label(nn.Module):
    """Tokens in, one label a sample: the class of the last state."""
    V = 19

    def __init__(self):
        super().__init__()
        self.table, self.cell, self.fc = (
            nn.Embedding(self.V, 6),
            nn.LSTM(6, 7, batch_first=True),
            nn.Linear(7, 5),
        )

    def forward(self, ids):
        return self.fc(self.cell(self.table(ids))[0][:, -1])


class Norms(nn.Module):
    """Fresh norms over the batch: their gains, biases and statistics are all ones and zeros."""

    def __init__(self):
        super().__init__()
        self.n0, self.n1, self.n2 = nn.BatchNorm2d(2), nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.c1, self.c2, self.fc = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3, bias=False), nn.Linear(4, 3)

    def forward(self, x):
        x = self.n1(F.relu(self.c1(self.n0(x))))
        return self.fc(self.n2(F.relu(self.c2(x))).mean((2, 3)))


class Fresh(nn.Module):
    """Norms that begin equal, one used twice; a buffer, a constant and what the exporter computes: only
    parameters are trained."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.fc = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 5)
        self.n1, self.n2, self.n3, self.g = (
            nn.LayerNorm(8),
            nn.LayerNorm(8),
            nn.LayerNorm(8),
            nn.GroupNorm(2, 8),
        )
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8))

    def forward(self, x):
        x = self.n1(self.a(x))
        x = self.n2(x + self.b(F.gelu(x))) * self.scale
        x = self.n3(self.n3(x)) + torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
        return self.fc(self.g(x.transpose(1, 2)).mean(2))


class Windows(nn.Module):
    """Volumes, transposed convolutions, resized images, pools of each kind, a norm over neighbours."""

    def __init__(self):
        super().__init__()
        self.v = nn.Conv3d(1, 2, (2, 3, 3), stride=(1, 2, 1), padding=(1, 1, 0))
        self.up = nn.ConvTranspose3d(2, 2, 2, 2)
        self.t = nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1, groups=2)
        self.s = nn.ConvTranspose1d(4, 3, 4, 2, 1)
        self.g, self.fc = nn.GroupNorm(2, 4), nn.Linear(36, 5)

    def forward(self, x):
        x = F.max_pool3d(self.up(F.gelu(self.v(x))), (2, 2, 1))
        x = F.avg_pool3d(F.pad(x, (1, -1), mode="constant"), (2, 1, 1), (1, 1, 1)).flatten(1, 2)
        x = self.g(self.t(F.interpolate(x[:, :4], size=(5, 4), mode="bilinear", align_corners=False)))
        x = F.local_response_norm(F.pad(x, (1, 1, 0, 0), mode="circular"), 3)
        x = F.interpolate(F.max_pool2d(x, 2, 2, dilation=2), size=(3, 2), mode="nearest")
        return self.fc(self.s(torch.sin(x.flatten(2)) + torch.cos(x.flatten(2)).floor()).flatten(1))


class Ways(nn.Module):
    """Both ways in time, states that are learned, steps of a plain cell; the best of a row."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (
            nn.LSTM(6, 4, batch_first=True, bidirectional=True),
            nn.GRU(8, 4, batch_first=True),
            nn.RNN(4, 3, batch_first=True, bidirectional=True),
        )
        self.h, self.fc = nn.Parameter(torch.randn(1, 1, 4)), nn.Linear(22, 5)

    def forward(self, x):
        y, (h, c) = self.a(x)
        z, _ = self.b(y, self.h.expand(1, x.shape[0], 4).contiguous())
        r, _ = self.c(z)
        best = torch.atan(z[:, -1]).topk(2)[0]
        return self.fc(torch.cat([c[0], h[1], r[:, 0], r[:, 3], best], 1))


def data_of(kind, rng, classes, shape):
    if kind == "label":
        return rng.integers(0, Label.V, (COUNT,) + shape).astype(np.int32), rng.integers(
            0, classes, COUNT
        ).astype(np.int32)
    if kind == "tokens":
        x = rng.integers(0, classes, (COUNT,) + shape).astype(np.int32)
        return x, rng.integers(0, classes, (COUNT,) + shape).astype(np.int32)
    return rng.standard_normal((COUNT,) + shape).astype(np.float32), rng.integers(0, classes, COUNT).astype(
        np.int32
    )


MODELS = {
    "mlp": mlp,
    "lenet": lambda: (Lenet(), "images", 5, (1, 12, 12)),
    "resnet": lambda: (Resnet(), "images", 5, (3, 16, 16)),
    "sdpa": lambda: (Sdpa(), "tokens", Gpt.V, (Gpt.T,)),
    "encoder": lambda: (Encoder(), "images", 5, (Encoder.T, Encoder.C)),
    "lstm": lambda: (Recurrent(nn.LSTM), "images", 5, (4, 6)),
    "gru": lambda: (Recurrent(nn.GRU), "images", 5, (4, 6)),
    "norms": lambda: (Norms(), "images", 3, (2, 8, 8)),
    "fresh": lambda: (Fresh(), "images", 5, (4, 6)),
    "windows": lambda: (Windows(), "images", 5, (1, 4, 5, 6)),
    "ways": lambda: (Ways(), "images", 5, (4, 6)),
    "label": lambda: (Label(), "label", 5, (6,)),
    "gpt": lambda: (Gpt(), "tokens", Gpt.V, (Gpt.T,)),
}


def export(model, x, path, opset):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (x,),
            path,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
            dynamo=False,
            opset_version=opset,
            input_names=["ids" if x.dtype == torch.int64 else "image"],
            output_names=["scores"],
            dynamic_axes=None if opset == 15 else {"image": {0: "n"}, "ids": {0: "n"}},
        )


def export_new(model, x, path, optimize=True, opset=18, free=False):
    """By the newer exporter, without the places in this file."""
    import onnx
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (x,),
            path,
            dynamo=True,
            optimize=optimize,
            opset_version=opset,
            dynamic_shapes=({0: torch.export.Dim("n")},) if free else None,
            input_names=["image"],
            output_names=["scores"],
            external_data=False,
            verbose=False,
        )
    file = onnx.load(path)
    for node in file.graph.node:
        kept = [p for p in node.metadata_props if p.key == "pkg.torch.onnx.fx_node"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(file, path)


class Zero(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.fc = nn.Linear(12, 4), nn.Linear(4, 3)
        nn.init.zeros_(self.a.bias)

    def forward(self, x):
        return self.fc(torch.relu(self.a(x)))


def refused(path):
    """Two ops that Heddle has not, one of them twice, and one of another domain."""
    from onnx import TensorProto, helper
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    nodes = [
        helper.make_node("Cos", ["x"], ["a"], name="first_wave"),
        helper.make_node("Relu", ["a"], ["b"], name="fine"),
        helper.make_node("Det", ["b"], ["c"], name="volume"),
        helper.make_node("Cos", ["b"], ["d"], name="second_wave"),
        helper.make_node("Relu", ["d"], ["y"], name="own", domain="com.example"),
    ]
    nodes[0].op_type = nodes[3].op_type = "STFT"        # cosines are read by now
    graph = helper.make_graph(nodes, "refused", [x], [y])
    with open(path, "wb") as f:
        f.write(
            helper.make_model(
                graph,
                opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)],
                ir_version=8,
            ).SerializeToString()
        )


def main(folder, only):
    if not only:
        refused(os.path.join(folder, "refused.onnx"))
        export_new(Zero(), torch.zeros(2, 12), os.path.join(folder, "lost.onnx"))
    for name, build in MODELS.items():
        if only and name not in only:
            continue
        torch.manual_seed(7)
        model, kind, classes, shape = build()
        rng = np.random.default_rng(11)
        x, y = data_of(kind, rng, classes, shape)
        at = os.path.join(folder, name)
        os.makedirs(at, exist_ok=True)
        tx = torch.from_numpy(x.astype(np.int64) if x.dtype == np.int32 else x)
        ty = torch.from_numpy(y.astype(np.int64))
        model.train()
        if name in ("norms", "fresh"):                # as people export for inference, before training
            model.eval()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(
                    model,
                    (tx[:2],),
                    os.path.join(at, "eval.onnx"),
                    training=torch.onnx.TrainingMode.EVAL,
                    dynamo=False,
                    do_constant_folding=False,
                    opset_version=17,
                    input_names=["image"],
                    output_names=["scores"],
                )
            export_new(model, tx[:2], os.path.join(at, "new.onnx"))
            model.train()
        elif name in ("windows", "ways"):             # a state that is repeated wants a free batch
            export(model, tx[:2], os.path.join(at, "free.onnx"), 20)
            export_new(model, tx[:2], os.path.join(at, "new.onnx"), False, 22, True)
        else:
            export(model, tx[:2], os.path.join(at, "model.onnx"), 15)
            export(model, tx[:2], os.path.join(at, "free.onnx"), 17)
        for m in model.modules():                     # exporting runs the model: moments start again
            if isinstance(m, nn.BatchNorm2d):
                m.reset_running_stats()
        logits = model(tx[:BATCH]).detach().numpy().copy()
        optim, losses = torch.optim.SGD(model.parameters(), lr=RATE.get(name, 0.05)), []
        for s in range(STEPS):
            b = slice(s % (COUNT // BATCH) * BATCH, s % (COUNT // BATCH) * BATCH + BATCH)
            loss = F.cross_entropy(model(tx[b]).reshape(-1, classes), ty[b].reshape(-1))
            optim.zero_grad()
            loss.backward()
            optim.step()
            losses.append(loss.item())
        save_file(
            {
                "x": x,
                "y": y,
                "logits": logits,
                "losses": np.array(losses),
                "rate": np.array([RATE.get(name, 0.05)], np.float32),
            },
            os.path.join(at, "expect.safetensors"),
        )
        print(name, [f"{v:.5f}" for v in losses])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)), sys.argv[2:])
