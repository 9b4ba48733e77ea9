#!/usr/bin/env python3
"""Rows as `sacct --parsable` prints them, of a cluster that does not exist, whose jobs never hold more
devices than it has: sacct_generate.py ROWS SEED [TYPE:N,... [LOAD [SINFO]]] prints them; at a LOAD of 0.8
(default 0.55) the queue of its slowest type grows without end. With SINFO nodes of four devices are in
partitions, whose jobs keep to them, and the file gets what sinfo prints of them. More than half of the rows
are steps; there are arrays, jobs that were cancelled before they began, that failed, that wait, jobs without
GPUs, rows that say Unknown, names with bars in them and rows that are there twice. Jobs of a type take
devices in the order in which they were submitted, those that are free first."""
import heapq
import math
import random
import sys
import time

FIELDS = ("JobID JobName User Account Partition QOS State Submit Start End Timelimit Elapsed ElapsedRaw "
          "NNodes ReqTRES AllocTRES").split()
SPEED = {"a100": 3.0, "v100": 1.5, "k80": 1.0}


# name: tier, factor, limit, PreemptMode; a node is in some by its number
PARTITIONS = {"gpu": (1, 1, "infinite", "REQUEUE"), "small": (1, 2, "12:00:00", "CANCEL"),
              "high": (10, 4, "2-00:00:00", "OFF"), "debug": (5, 3, "01:00:00", "REQUEUE")}
MOST = {"gpu": math.inf, "small": 43200, "high": 172800, "debug": 3600}
PER_NODE = 4


def partitions_of(k):
    return ["gpu"] + (["small"] if k % 2 else ["high"]) + (["debug"] if k % 3 == 2 else [])


def when(s):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(s)) if s is not None else "Unknown"


def span(s):
    d, s = divmod(int(s), 86400)
    return (f"{d}-" if d else "") + time.strftime("%H:%M:%S", time.gmtime(s))


def row(**cells):
    return "|".join(str(cells.get(f, "")) for f in FIELDS) + "|"


class Nodes:
    """Devices on nodes in partitions; each job takes those of its partition that are free first."""
    def __init__(self, types, seed, begin):
        self.rng, self.device, k = random.Random(seed), {}, 0
        for t, n in sorted(types.items()):
            for d in range(n):
                self.device.setdefault(t, []).append([begin, f"{t}-{d // PER_NODE:02}", k + d // PER_NODE])
            k += -(-n // PER_NODE)

    def sinfo(self):
        widths = [96, 16, 64, 256, 256, 16, 24, 16, 24, 24]
        for t, devices in self.device.items():
            for name, k in dict.fromkeys((d[1], d[2]) for d in devices):
                n = sum(d[1] == name for d in devices)
                for p in partitions_of(k):
                    tier, factor, limit, mode = PARTITIONS[p]
                    cells = [name, "idle", p, f"gpu:{t}:{n}", f"gpu:{t}:0", "up", limit, tier, factor, mode]
                    yield "".join(str(c).ljust(w) for c, w in zip(cells, widths))

    def choose(self, job):
        """A partition in which it may run."""
        fits = [p for p in PARTITIONS if job["limit"] <= MOST[p] and job["gpus"] <=
                sum(p in partitions_of(d[2]) for d in self.device[job["type"]])]
        return self.rng.choice(fits) if fits else "gpu"

    def run(self, job):
        mine = sorted(d for d in self.device[job["type"]] if job["partition"] in partitions_of(d[2]))
        taken = mine[:job["gpus"]]
        start = max([job["submit"]] + [d[0] for d in taken])
        for d in taken:
            d[0] = start + job["took"]
        return start, ",".join(sorted({d[1] for d in taken}))


class Cluster:
    def __init__(self, types, rng, begin):
        self.free = {t: [begin] * n for t, n in types.items()}
        self.rng = rng
        for heap in self.free.values():
            heapq.heapify(heap)

    def run(self, type, gpus, submit, took):
        heap = self.free[type]
        taken = [heapq.heappop(heap) for _ in range(gpus)]
        start = max([submit] + taken)
        for _ in range(gpus):
            heapq.heappush(heap, start + took)
        return start


def jobs(rng, types, begin, load=0.55):
    """Submissions one after another, for ever: those of an array have one time."""
    cluster = Cluster(types, rng, begin)
    mean = 26000                                    # device seconds of a submission, about
    now, id = begin, 400000
    while True:
        now += math.ceil(rng.expovariate(load * sum(types.values()) / mean))
        id += 1
        user = rng.randrange(24)
        model = rng.choice(["vit", "bert", "unet", "lm", "gnn"])
        job = {"id": id, "user": f"u{user:02}", "account": f"lab{user % 6}", "submit": now,
               "name": f"{model}-{user % 7}-seed{rng.randrange(9)}"}
        n = rng.choice([0, 0, 0, 0, 0, 0, 0, 4, 9])
        for task in range(max(n, 1)):
            one = dict(job, id=f"{id}_{task}" if n else str(id), base=id)
            one["type"] = rng.choice(sorted(types))
            one["gpus"] = min(rng.choice([1, 1, 1, 1, 2, 2, 4, 8]), types[one["type"]])
            work = rng.lognormvariate(8, 1.1) * (1 + user % 7 / 4) if not n else 4000.0
            one["took"] = max(2, int(work / SPEED.get(one["type"], 1) * rng.uniform(.9, 1.1)))
            one["limit"] = 60 * math.ceil(one["took"] * rng.choice([1.05, 1.5, 3, 6]) / 60)
            yield one, cluster


def rows(n, seed, types, load=0.55, sinfo=None):
    rng = random.Random(seed)
    begin = 1790000000
    nodes = Nodes(types, seed, begin) if sinfo else None
    if sinfo:
        with open(sinfo, "w") as f:
            f.writelines(line + "\n" for line in nodes.sinfo())
    out, made = [], jobs(rng, types, begin, load)
    while len(out) < n:
        job, cluster = next(made)
        kind = rng.random()
        base = dict(JobID=job["id"], JobName=job["name"], User=job["user"], Account=job["account"],
                    Partition="gpu" if job["gpus"] > 1 else "small",
                    QOS=rng.choice(["normal", "normal", "high"]),
                    Submit=when(job["submit"]), Timelimit=span(job["limit"]), NNodes=-(-job["gpus"] // 8),
                    ReqTRES=f"billing=4,cpu={4 * job['gpus']},gres/gpu={job['gpus']},mem=32G,node=1")
        if nodes:
            base["Partition"] = job["partition"] = nodes.choose(job)
            odd = nodes.rng.random()
            if odd < .03:                               # of another one, or of none
                base["Partition"] = "" if odd < .015 else "gone"
            elif odd < .08:                             # it never said which it began by
                base["Partition"] = "debug," + job["partition"]
            elif odd < .12:                             # an operator let it run for longer
                base["Timelimit"] = span(3 * 86400)
        if kind < .03:                                  # cancelled while it waited
            out.append(row(**base, State=f"CANCELLED by {1000 + rng.randrange(24)}", Start="None",
                           End=when(job["submit"] + 300), Elapsed="00:00:00", ElapsedRaw=0))
            continue
        if kind < .04:                                  # an array that waits
            base["JobID"] = f"{job['base']}_[20-{20 + rng.randrange(9)}%2]"
            out.append(row(**base, State="PENDING", Start="Unknown", End="Unknown", Elapsed="00:00:00",
                           ElapsedRaw=0))
            continue
        if kind < .045:
            base["Submit"] = "Unknown"
            out.append(row(**base, State="NODE_FAIL", Start="Unknown", End="Unknown", Elapsed="00:10:00",
                           ElapsedRaw=600))
            continue
        if kind < .10:                                  # no GPU
            base["ReqTRES"] = "billing=4,cpu=4,mem=8G,node=1"
            out.append(row(**base, State="COMPLETED", Start=when(job["submit"]),
                           End=when(job["submit"] + 60), Elapsed="00:01:00", ElapsedRaw=60,
                           AllocTRES=base["ReqTRES"]))
            continue
        if nodes:
            start, base["NodeList"] = nodes.run(job)
        else:
            start = cluster.run(job["type"], job["gpus"], job["submit"], job["took"])
        end = start + job["took"]
        alloc = base["ReqTRES"] + f",gres/gpu:{job['type']}={job['gpus']}"
        if kind < .13:
            base["JobName"] = "sweep|" + job["name"] + "|x"
        state = "FAILED" if kind > .97 else "TIMEOUT" if kind > .96 else "COMPLETED"
        whole = row(**base, State=state, Start=when(start), End=when(end), Elapsed=span(job["took"]),
                    ElapsedRaw=job["took"], AllocTRES=alloc)
        out.append(whole)
        for step in ["batch", "extern", "0"][:rng.choice([1, 1, 2, 3])]:
            out.append(row(JobID=f"{job['id']}.{step}", JobName=step, Account=job["account"],
                           Submit=when(start), Start=when(start), End=when(end), State=state,
                           Elapsed=span(job["took"]), ElapsedRaw=job["took"], NNodes=1,
                           AllocTRES=f"cpu=4,gres/gpu:{job['type']}={job['gpus']},mem=32G,node=1"))
        if kind > .995:
            out.append(whole)
    return out[:n]


def main():
    types = sys.argv[3] if len(sys.argv) > 3 else "a100:64,k80:64,v100:128"
    types = {t: int(n) for t, n in (one.split(":") for one in types.split(","))}
    sinfo = sys.argv[5] if len(sys.argv) > 5 else None
    if sinfo:
        FIELDS.append("NodeList")
    print("|".join(FIELDS) + "|")
    load = float(sys.argv[4]) if len(sys.argv) > 4 else 0.55
    for line in rows(int(sys.argv[1]), int(sys.argv[2]), types, load, sinfo):
        print(line)


if __name__ == "__main__":
    main()
