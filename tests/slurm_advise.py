#!/usr/bin/env python3
"""What `heddle sched advise` says would start next on a real Slurm, and what Slurm then starts.

slurm_advise.py HEDDLE SITUATIONS SEED [all]: on the cluster of tests/slurm.sh, which is idle. Each situation
fills all nodes, submits jobs that wait (two partitions, priorities, limits, dependencies, some held, some for
later, some that ask for too long, sometimes a partition that is down), asks for advice on what squeue and
sinfo print without one or two of the jobs that run, ends these, and looks what Slurm begins. Prints a line a
situation and policy; exit code 1 where --policy slurm says something else than Slurm does, where any advice
has a job that cannot start, or where advice on the cluster afterwards has any at all."""
import json
import os
import random
import re
import subprocess
import sys
import time

NODES = ["v1", "v2", "k1", "k2"]
GPUS = 2


def out(*argv, **more):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **more).stdout


def states(column="State"):
    text = out("squeue", "-h", "-r", "-t", "PD,CF,R,CG", "-O", f"JobArrayID:32,{column}:48")
    return {line[:32].strip(): line[32:].strip() for line in text.splitlines()}


def wait(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def submit(*options):
    return out("sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", "sleep 900").strip()


def formats(heddle):
    text = out(heddle, "sched", "advise", "--help")
    said = {}
    for program in "squeue", "sinfo":
        at = text.index(program + " --noheader")
        said[program] = text[at:].split(" -O ", 1)[1].split()[0]
    return said


class Situation:
    def __init__(self, rng):
        self.rng, self.barred, self.words = rng, {}, {}
        self.fillers = {}
        out("scontrol", "update", "PartitionName=high", "State=UP")
        for node in NODES:
            for n in rng.choice([[2], [1, 1], [1, 1]]):
                limit = str(rng.choice([10, 30, 60, 90]))
                id = submit("-p", "all", "-w", node, f"--gres=gpu:{n}", "-t", limit)
                self.fillers[id] = (node, n)
        if not wait(lambda: all(states().get(id) == "RUNNING" for id in self.fillers)):
            sys.exit("the nodes do not fill: " + str(states("Reason")))
        for _ in range(rng.randint(6, 10)):
            self.add()
        self.down = rng.random() < .2
        out("scontrol", "update", "PartitionName=high", "State=" + ("DOWN" if self.down else "UP"))
        for id, words in self.words.items():
            if self.down and words.startswith("high "):
                self.barred[id] = "PARTITION_DOWN"

    def add(self):
        rng = self.rng
        partition = rng.choice(["all", "all", "all", "high", "all,high"])
        kind = rng.choice(["", "", "", "v100:", "k80:"])
        n, nodes = rng.choice([(1, 1), (1, 1), (2, 1), (2, 1), (1, 2), (2, 2)])
        options = ["-p", partition, f"--gres=gpu:{kind}{n}", f"-N{nodes}",
                   "-t", str(rng.choice([5, 20, 45, 60]))]
        odd, bar = rng.random(), None
        if odd < .12:
            options, bar = options + ["--hold"], "HELD"
        elif odd < .22:
            options, bar = options + ["-d", "afterok:" + min(self.fillers, key=int)], "DEPENDENCY"
            self.keep = min(self.fillers, key=int)
        elif odd < .30:
            options, bar = options + ["--begin=now+1hour"], "BEGIN_TIME"
        elif odd < .40 and partition == "high":
            options, bar = options + ["-t", "120"], "PARTITION_LIMIT"
        id = submit(*options)
        if bar is None and rng.random() < .4:
            out("scontrol", "update", "JobId=" + id, f"Priority={rng.randint(1, 2 ** 32 - 9)}")
        if bar:
            self.barred[id] = bar
        self.words[id] = f"{partition} {nodes}x{n} {kind} {bar or ''}"

    keep = None

    def ending(self):
        free = [id for id in self.fillers if id != self.keep]
        return self.rng.sample(free, self.rng.choice([1, 1, 2]))


def columns(line, format):
    at = 0
    for one in format.split(","):
        name, width = one.split(":")
        yield name, at, at + int(width)
        at += int(width)


def without(text, format, fillers, ending):
    """squeue's or sinfo's lines as if these jobs had ended."""
    kept = []
    for line in text.splitlines():
        at = {name: (a, b) for name, a, b in columns(line, format)}
        cell = lambda name: line[slice(*at[name])].strip()
        if "JobArrayID" in at:
            if cell("JobArrayID") in ending:
                continue
        else:
            less = sum(fillers[id][1] for id in ending if fillers[id][0] == cell("NodeList"))
            kind, n = re.match(r"gpu:(\w+):(\d+)", cell("GresUsed")).groups()
            a, b = at["GresUsed"]
            line = line[:a] + f"gpu:{kind}:{int(n) - less}".ljust(b - a) + line[b:]
        kept.append(line)
    return "".join(line + "\n" for line in kept)


def look(heddle, format, situation, policies):
    env = dict(os.environ, SLURM_TIME_FORMAT="%s")
    ending = situation.ending()
    live = {"squeue": out("squeue", "--noheader", "--array",
                          "--states=PENDING,CONFIGURING,RUNNING,COMPLETING,SUSPENDED,STOPPED", "-O",
                          format["squeue"], env=env),
            "sinfo": out("sinfo", "--noheader", "--Node", "-O", format["sinfo"], env=env)}
    files = []
    for name, text in live.items():
        with open(name + ".live", "w") as f:
            f.write(without(text, format[name], situation.fillers, ending))
        files += ["--" + name, name + ".live"]
    advice = {p: json.loads(out(heddle, "sched", "advise", "--policy", p, *files, "--json"))["jobs"]
              for p in policies}
    before = {id for id, s in states().items() if s == "RUNNING"}
    out("scancel", *ending)
    wanted = {j["job"] for j in advice["slurm"] if j["starts"]}
    ran = lambda: {id for id, s in states().items() if s in ("RUNNING", "CONFIGURING")} - before
    wait(lambda: wanted <= ran(), 15)
    time.sleep(2.5)                 # backfill looks once a second: what else is there would begin now
    return ending, advice, ran(), live


def main():
    heddle, n, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    policies = ["slurm", "priority-backfill", "fifo", "las"] if sys.argv[4:] == ["all"] else ["slurm"]
    format = formats(heddle)
    same, bad = dict.fromkeys(policies, 0), 0
    out("scontrol", "update", "PartitionName=all", "PreemptMode=OFF")
    out("scontrol", "update", "PartitionName=high", "MaxTime=60")
    for k in range(n):
        situation = Situation(random.Random(1000 * seed + k))
        ending, advice, ran, live = look(heddle, format, situation, policies)
        for p in policies:
            said = {j["job"]: j for j in advice[p]}
            starts = {id for id in said if said[id]["starts"]}
            same[p] += starts == ran
            if starts != ran:
                print(f"{k} {p}: says {sorted(starts)}, Slurm {sorted(ran)}",
                      {i: (situation.words[i], said[i]["code"]) for i in sorted(starts ^ ran)})
            for id, bar in situation.barred.items():
                if said[id]["starts"] or said[id]["code"] not in (bar, "HELD_BY_SLURM"):
                    print(f"{k} {p}: job {id} cannot start ({bar}), advised as {said[id]}")
                    bad += 1
            if p == "slurm" and starts != ran:
                bad += 1
                print(live["squeue"], live["sinfo"], sep="\n")
        again = json.loads(out(heddle, "sched", "advise", "--policy", "slurm", "--json"))["jobs"]
        if any(j["starts"] for j in again):
            bad += 1
            print(f"{k}: afterwards Slurm starts none, advised are", [j for j in again if j["starts"]],
                  states("Reason"))
        out("scancel", "-u", "root")
        wait(lambda: not states())
    out("scontrol", "update", "PartitionName=high", "State=UP", "MaxTime=INFINITE")
    out("scontrol", "update", "PartitionName=all", "PreemptMode=REQUEUE")
    print("of", n, "situations advice and Slurm are the same:", same)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
