# graph_epoch.py make VERTICES EDGES | MODEL scatter|sparse|dgl THREADS EPOCHS | watch PID METRICS STEPS AT
# For graph_epoch.sh: makes a graph with a power law of degrees in the current folder, or trains the
# network of PyTorch Geometric (scatter, sparse) or of DGL on it and prints processor and wall seconds
# of an epoch (least of all but the first), first and last loss. watch follows the metrics.ndjson that a
# run of process PID writes and prints the same of its steps (means of all but the first), the losses of
# step 0 and of step AT - 1.
import json
import os
import sys
import time

import numpy as np

WIDTH, CLASSES = 128, 16


def make(vertices, edges):
    random = np.random.default_rng(1)
    weight = random.permutation((np.arange(vertices) + 10.0) ** -0.5)
    bound = np.cumsum(weight / weight.sum())
    ends = np.searchsorted(bound, random.random((2, edges // 2))).clip(0, vertices - 1).astype("<i8")
    np.save("edges.npy", ends)
    np.save("features.npy", random.random((vertices, WIDTH), dtype=np.float32) - 0.5)
    np.save("labels.npy", random.integers(0, CLASSES, vertices).astype("<i8"))
    half = vertices // 2
    with open("split.txt", "w") as split:
        for name, ids in (("train", range(half)), ("val", range(half, half + 100)),
                          ("test", range(half + 100, half + 200))):
            print(name, *ids, file=split)


def processor_s(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(pid, path, steps, at):
    lines, seen, last = [], {}, 0       # seen: processor time when a step's line was there
    while len(lines) < steps:
        now = processor_s(pid)
        last = now or last              # it may have ended with its last step
        if os.path.exists(path):
            with open(path) as metrics:
                lines = [json.loads(line) for line in metrics if line.endswith("\n")]
        if now is None and len(lines) < steps:
            sys.exit(f"graph_epoch: the run ended after {len(lines)} of {steps} steps")
        seen.setdefault(len(lines), last)
        time.sleep(0.01)
    first = min(n for n in seen if n > 0)
    if first == steps:
        sys.exit("graph_epoch: the steps went by too fast to be seen; set STEPS")
    wall = [line["step_ms"] for line in lines[1:steps]]
    print(f"{(seen[steps] - seen[first]) / (steps - first):.3f} {sum(wall) / len(wall) / 1000:.3f}",
          f"{lines[0]['loss']:.4f} {lines[min(at, steps) - 1]['loss']:.4f}")


def of_dgl(model, edges, n):
    import dgl
    from dgl.nn import GATConv, GraphConv

    graph = dgl.add_self_loop(dgl.graph((edges[0], edges[1]), num_nodes=n))
    if model == "gcn":
        made = GraphConv(WIDTH, 128), GraphConv(128, CLASSES)
    else:
        made = GATConv(WIDTH, 8, 8), GATConv(64, CLASSES, 1)

    class Layer:        # called as those of PyTorch Geometric are
        def __init__(self, layer):
            self.layer, self.parameters = layer, layer.parameters

        def __call__(self, x, graph):
            return self.layer(graph, x).flatten(1)

    return [Layer(layer) for layer in made], graph


def train(model, form, threads, epochs):
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    x, y = torch.from_numpy(np.load("features.npy")), torch.from_numpy(np.load("labels.npy"))
    n = x.shape[0]
    ends = np.load("edges.npy")
    ends = ends[:, ends[0] != ends[1]]
    key = np.unique(np.concatenate([ends[0] * n + ends[1], ends[1] * n + ends[0]]))
    edges = torch.from_numpy(np.stack([key // n, key % n]))
    if form == "sparse":
        edges = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (n, n)).to_sparse_csr()
    learns = torch.arange(n) < n // 2
    if form == "dgl":
        layers, edges = of_dgl(model, edges, n)
    elif model == "gcn":
        from torch_geometric.nn import GCNConv
        layers = GCNConv(WIDTH, 128, cached=True), GCNConv(128, CLASSES, cached=True)
    else:
        from torch_geometric.nn import GATConv
        layers = GATConv(WIDTH, 8, heads=8), GATConv(64, CLASSES)
    act = F.relu if model == "gcn" else F.elu
    step = torch.optim.Adam([p for layer in layers for p in layer.parameters()], lr=0.01)
    cpu, wall, loss = [], [], []
    for _ in range(epochs):
        began = time.process_time(), time.perf_counter()
        step.zero_grad()
        now = F.cross_entropy(layers[1](act(layers[0](x, edges)), edges)[learns], y[learns])
        now.backward()
        step.step()
        cpu.append(time.process_time() - began[0])
        wall.append(time.perf_counter() - began[1])
        loss.append(now.item())
    print(f"{min(cpu[1:]):.3f} {min(wall[1:]):.3f} {loss[0]:.4f} {loss[-1]:.4f}")


if sys.argv[1] == "make":
    make(int(sys.argv[2]), int(sys.argv[3]))
elif sys.argv[1] == "watch":
    watch(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
else:
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
