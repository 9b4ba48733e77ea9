#!/usr/bin/env python3
"""torch_step.py PROBLEM OURS THREADS STEPS [HOW] -- PyTorch trains what `heddle bench step --save PROBLEM
--json >OURS` timed.

Same initial parameters (load_state_dict, strict), same rows in the same steps, same AdamW; prints one line of
JSON: medians and least times, the losses, and the largest relative difference of a step's loss to ours
(`loss_diff`).

The peer at its best: eager, torch.compile and torch.compile(mode="max-autotune"), images in both layouts, the
update fused or compiled. Each is tried for a few steps and the fastest is timed; HOW names one of an earlier
call and saves the trials. HD_TORCH_TRIES lists the ways to try (default "eager compile autotune"),
HD_TORCH_LIMIT_S bounds each trial with its compilation. A way that cannot be had on this machine (no
compiler, the limit) is named on stderr and in `failed`.

Norms over a batch: ours are taken per virtual node ("ghost" norms), so the plain module has other losses. The
timed module is the plain one; `loss_diff` is then of an untimed run of the same module in batches of batch/V
rows, of CHECKED steps at most. Through twenty norms and AdamW, where a gradient near nothing moves a weight
as far as any, rounding grows from step to step: `self_diff` is how far that run is from itself when only the
order of its sums changes (channels last)."""

import json, os, signal, statistics, sys, time

problem_path, ours_path, threads, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
asked = sys.argv[5] if len(sys.argv) > 5 else None
os.environ["OMP_NUM_THREADS"] = str(threads)
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch_models import Problem

WARMUP, TRIED, CHECKED = 3, 6, 6
torch.set_num_threads(threads)
problem = Problem(problem_path)
job, rows, batch, begin = problem.job, problem.rows, problem.batch, problem.begin
optim = job["optim"]
if (
    optim["kind"] != "adamw"
    or optim["clip"]
    or optim["schedule"]["kind"] != "constant"
    or optim["schedule"]["warmup"]
):
    sys.exit("torch_step: this script knows adamw at a constant rate without clipping")


class Late(Exception):
    pass


def late(*_):
    raise Late()


def measure(how, n):
    """n timed steps in the way `how`: its words are the ways of the parts."""
    words = how.split(", ")
    layout = torch.channels_last if "channels last" in words else None
    model = begin().to(memory_format=layout) if layout else begin()
    run = (
        torch.compile(model, mode="max-autotune")
        if "autotune" in words
        else torch.compile(model) if "compile" in words else model
    )
    fused = "compiled update" not in words
    adamw = torch.optim.AdamW(model.parameters(), lr=optim["lr"], betas=optim["betas"], eps=optim["eps"],
                              weight_decay=optim["weight_decay"], fused=fused)
    update = adamw.step if fused else torch.compile(adamw.step)
    data = [batch(s, layout) for s in range(n + WARMUP)]
    times, losses = [], []
    for x, y in data:
        t0 = time.perf_counter()
        loss = F.cross_entropy(run(x), y)
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        update()
        losses.append(loss.item())
        times.append((time.perf_counter() - t0) * 1e3)
    return times[WARMUP:], losses


def tried(hows, least, failed):
    for how in hows:
        signal.alarm(int(os.environ.get("HD_TORCH_LIMIT_S", "300")))
        try:
            least[how] = min(measure(how, min(steps, TRIED))[0])
        except (Exception, Late) as e:
            failed[how] = type(e).__name__
            print(f"torch_step: {how}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
        signal.alarm(0)


def ghost_losses(n, layout):
    """The same module, one virtual node after the other: norms see batch/V rows, as ours do."""
    model, nvns, losses = begin().to(memory_format=layout), job["batch"]["virtual_nodes"], []
    adamw = torch.optim.AdamW(
        model.parameters(),
        lr=optim["lr"],
        betas=optim["betas"],
        eps=optim["eps"],
        weight_decay=optim["weight_decay"],
        fused=True,
    )
    for s in range(n):
        x, y = batch(s, layout)
        loss = F.cross_entropy(
            torch.cat([model(part) for part in x.split(job["batch"]["global"] // nvns)]), y
        )
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        adamw.step()
        losses.append(loss.item())
    return losses


signal.signal(signal.SIGALRM, late)
least, failed = {}, {}
if not asked:
    layouts = [""] + [", channels last"] * (rows["step0.x"].dim() == 4)
    ways = os.environ.get("HD_TORCH_TRIES", "eager compile autotune").split()
    tried([way + layout for way in ways for layout in layouts], least, failed)
    if any(way != "eager" for way in ways) and least:
        tried([min(least, key=least.get) + ", compiled update"], least, failed)
    if not least:
        sys.exit("torch_step: no way of training could be had: " + json.dumps(failed))
how = asked or min(least, key=least.get)
times, losses = measure(how, steps)
ours = json.load(open(ours_path))["losses"]
norms = (
    any(isinstance(m, nn.BatchNorm2d) for m in begin().modules())
    and job["model"]["bn"] == "ghost"
    and job["batch"]["virtual_nodes"] > 1
)
layouts = [] if asked and norms else [torch.contiguous_format, torch.channels_last] if norms else [None]
checked = [ghost_losses(min(CHECKED, len(losses)), layout) if norms else losses for layout in layouts]


def furthest(some, others):
    return max(abs(a - b) / abs(b) for a, b in zip(some, others))


diff, own = (furthest(ours, checked[0]) if checked else None), (furthest(*checked) if len(checked) > 1 else 0)
print(
    json.dumps(
        {
            "peer": f"PyTorch {torch.__version__}",
            "how": how,
            "step_ms_median": statistics.median(times),
            "step_ms_min": min(times),
            "loss_first": losses[0],
            "loss_last": losses[-1],
            "loss_diff": diff,
            "self_diff": own,
            "checked": checked,
            "ghost": norms,
            "tried": least,
            "failed": failed,
        }
    )
)
