"""order_ddp.py -- steps of DistributedDataParallel over gloo whose nodes wait what a profile says, with the
bytes that it says. order.sh starts one a machine. The first prints, for each size of buckets, a line of
order.sh's: name, step, "-", "-", spread, "-". Of 0 MiB: a bucket for each tensor.

python3 order_ddp.py PROFILE RANK SIZE STEPS MIB...
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist


class Wait(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, ahead, back):
        ctx.back, ctx.like = back, weight
        time.sleep(ahead)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.back)
        return grad, torch.ones_like(ctx.like), None, None


class Model(torch.nn.Module):
    """Nodes without parameters are waited for with the one before them."""

    def __init__(self, nodes):
        super().__init__()
        self.weights, self.waits = torch.nn.ParameterList(), []
        for x in nodes:
            f, i, w = (x[k]["p50"] / 1e9 for k in "fiw")
            if x["param"] or not self.waits:
                self.weights.append(torch.nn.Parameter(torch.zeros(max(1, x["param"] // 4))))
                self.waits.append([f, i + w])
            else:
                self.waits[-1][0] += f
                self.waits[-1][1] += i

    def forward(self, x):
        for weight, (ahead, back) in zip(self.weights, self.waits):
            x = Wait.apply(x, weight, ahead, back)
        return x


def main(profile, rank, size, steps, sizes):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="10.77.0.1", MASTER_PORT="7100")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    nodes = json.load(open(profile))["nodes"]
    for mib in sizes:
        model = torch.nn.parallel.DistributedDataParallel(Model(nodes), bucket_cap_mb=mib or 1e-6)
        took, was = [], None
        for step in range(-3, steps + 1):    # buckets are made again after the first
            model.zero_grad(set_to_none=False)
            model(torch.ones(1, requires_grad=True)).sum().backward()
            assert all(p.grad.view(-1)[0].item() == 1 for p in model.parameters())
            now = time.perf_counter()
            if step > 0:
                took.append((now - was) * 1e3)
            was = now
        took.sort()
        tenth = max(1, len(took) // 10)
        spread = (sum(took[-tenth:]) / sum(took[:tenth]) - 1) * 100
        if rank == 0:
            print("ddp-%gMiB %.0f - - %.0f -" % (mib, took[(len(took) - 1) // 2], spread), flush=True)
        dist.barrier()
        del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], *(int(x) for x in sys.argv[2:5]), [float(x) for x in sys.argv[5:]])
