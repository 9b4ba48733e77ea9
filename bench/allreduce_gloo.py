"""allreduce_gloo.py -- torch.distributed over gloo, timed as `heddle bench allreduce` times ours. Prints the
median in milliseconds.

python3 allreduce_gloo.py PROCESSES BYTES REPEAT
"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def member(rank, size, nbytes, repeat, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    values, times = torch.empty(nbytes // 4), []
    for r in range(-3, repeat):
        values.fill_(rank + 1.0)
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(values)
        took = torch.tensor([(time.perf_counter() - began) * 1e3], dtype=torch.float64)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        assert values[-1].item() == size * (size + 1) / 2
        if r >= 0:
            times.append(took.item())
    if rank == 0:
        print("%.3f" % sorted(times)[(repeat - 1) // 2])
    dist.destroy_process_group()


if __name__ == "__main__":
    size, nbytes, repeat = (int(x) for x in sys.argv[1:4])
    mp.spawn(member, args=(size, nbytes, repeat, 20000 + os.getpid() % 20000), nprocs=size)
