#!/usr/bin/env python3
"""bench/sweep.py HEDDLE SHARED [CASE...] -- sweeps of 27 trials on 4 devices beside exhaustive search.

For each case (a job, a space of 27 points, what is compared, three seeds of the job) three sweeps through a
scheduler with four devices of its own: grid brings every trial to the last step, halving and asha stop most
of them. Then each trial of halving and of asha is run alone, on one device in one process, as far as it came.

	best	trial that the sweep ends with, and its place among all when each is brought to the end
	steps	of the sweep, as a part of those of exhaustive search
	bits	trials whose digest is that of the run alone, of all
	order	halving: the trials that went on are those that follow from the metrics; asha: so, each
		promotion from what had come before it, by another program, from the record

Nothing is timed. SHARED/data has the text and the graph; a case whose data is not there is left out."""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

MLP = """job: {name: mlp, seed: %d, steps: 90}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [20, 20], classes: 4}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: cosine, warmup: 5}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
"""
LSTM = """job: {name: lstm, seed: %d, steps: 90}
model: {use: "builtin:lstm", args: {layers: 1, width: 16, hidden: 32, context: 32, vocab: 256}}
data: {kind: text, path: "SHARED/data/text/tinyshakespeare.txt", split: {train: 0.98, valid: 0.02}}
batch: {global: 16, virtual_nodes: 4, normalize: token}
optim: {kind: adamw, lr: 4e-3, clip: 1.0, schedule: {kind: cosine, warmup: 5}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
"""
GCN = """job: {name: gcn, seed: %d, steps: 90}
graph: {prepared: cora.graph, model: gcn, layers: 2, hidden: 16, dropout: 0.5, bias: "false", rows: sum1}
optim: {kind: adam, lr: 0.01, weight_decay: 5e-4, decay: [layers.0.*], clip: 0,
  schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
"""
CASES = {
    'mlp': (MLP, '{optim.lr: {log: [1e-3, 1e-1], n: 3}, optim.weight_decay: [0, 0.01, 0.1], '
                 'batch.global: [32, 64, 128]}', '{name: loss, over: 5}'),
    'lstm': (LSTM, '{optim.lr: {log: [1e-3, 1e-1], n: 3}, model.args.hidden: [16, 32, 64], '
                   'optim.clip: [0.3, 1.0, 3.0]}', '{name: val_loss}'),
    'gcn': (GCN, '{optim.lr: {log: [1e-3, 1e-1], n: 3}, graph.hidden: [8, 16, 32], '
                 'graph.dropout: [0.2, 0.5, 0.7]}', '{name: val_loss}'),
}
METHODS = {'grid': 'steps: {max: 90}', 'halving': 'draw: grid\nsteps: {min: 18, max: 90, eta: 3}',
           'asha': 'draw: grid\nparallel: 4\nsteps: {min: 18, max: 90, eta: 3}'}
RUNGS, ETA, PARALLEL = [18, 54, 90], 3, 4


def sweep(heddle, method, space, metric):
    with open(method + '.yaml', 'w') as f:
        f.write('job: job.yaml\nmethod: %s\nspace: %s\nmetric: %s\n%s\n' % (method, space, metric,
                                                                          METHODS[method]))
    got = subprocess.run([heddle, 'sweep', method + '.yaml', '--dir', 'D-' + method, '--pool', 'cpu:4',
                          '--round', '0.5', '--json'], capture_output=True, text=True)
    if got.returncode:
        raise SystemExit('sweep %s: %s' % (method, got.stderr[-3000:]))
    return json.loads(got.stdout)


def alone(heddle, row):
    sets = [a for s in row['set'] for a in ('-s', s)]
    subprocess.run([heddle, 'run', 'job.yaml', '--out', 'alone', '-q', '--devices', '1', '--steps',
                    str(row['steps'])] + sets, check=True, stderr=subprocess.DEVNULL)
    digest = subprocess.run([heddle, 'ckpt', 'digest', 'alone'], check=True, capture_output=True, text=True)
    shutil.rmtree('alone')
    return digest.stdout.split()[0]


def better(x):
    return lambda i: (not math.isfinite(x[i]), x[i] if math.isfinite(x[i]) else 0, i)


def halving_went(table):
    """The trials of each rung follow from the metrics of the one before."""
    at = [[r['metric'] for r in row['rungs']] for row in table['trials']]
    here = list(range(len(at)))
    for k in range(len(RUNGS)):
        if sorted(here) != [i for i, m in enumerate(at) if len(m) > k]:
            return False
        here = sorted(here, key=better({i: at[i][k] for i in here}))[:max(1, len(at) // ETA ** (k + 1))]
    return True


def asha_went(record, ntrials):
    """Each line of the record is of a trial that was on its way to that rung, by the rule alone: while fewer
    than PARALLEL run, the best of the top 1/eta of a rung that has not gone on does, from the highest rung
    down; else the next trial begins."""
    metric = [{} for _ in RUNGS]
    running, gone, fresh = {}, [set() for _ in RUNGS], 0
    with open(record) as f:
        lines = [json.loads(line) for line in f][1:]
    for line in lines + [None]:
        while len(running) < PARALLEL:
            for k in reversed(range(len(RUNGS) - 1)):
                top = sorted(metric[k], key=better(metric[k]))[:len(metric[k]) // ETA]
                up = sorted(i for i in top if i not in gone[k])
                if up:
                    gone[k].add(up[0])
                    running[up[0]] = k + 1
                    break
            else:
                if fresh == ntrials:
                    break
                running[fresh] = 0
                fresh += 1
        if line is None:
            return not running and fresh == ntrials
        i, k = line['trial'], line['rung']
        if running.pop(i, None) != k or line['step'] != RUNGS[k]:
            return False
        metric[k][i] = line['metric']
    return False


def case(heddle, shared, name, seed, folder):
    job, space, metric = CASES[name]
    os.makedirs(folder)
    os.chdir(folder)
    if name == 'gcn':
        d = shared + '/data/graphs/cora/'
        subprocess.run([heddle, 'data', 'prepare-graph', '--edges', d + 'edges.txt', '--features',
                        d + 'features.svm', '--split', d + 'split.txt', '-o', 'cora.graph'], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open('job.yaml', 'w') as f:
        f.write((job % seed).replace('SHARED', shared))
    all_ = sweep(heddle, 'grid', space, metric)
    final = [row['metric'] for row in all_['trials']]
    order = sorted(range(len(final)), key=better(dict(enumerate(final))))
    for method in ('halving', 'asha'):
        t = sweep(heddle, method, space, metric)
        right = sum(alone(heddle, row) == row['digest'] for row in t['trials'])
        went = halving_went(t) if method == 'halving' else \
            asha_went('D-asha/sweeps/asha/record.ndjson', len(t['trials']))
        print('%-5s %4d  %-8s %4d %9.6g %5d %9.6g  %5.1f %%  %2d/%d  %s' % (
            name, seed, method, t['best'], t['trials'][t['best']]['metric'], order.index(t['best']) + 1,
            final[order[0]], 100 * t['steps'] / all_['steps'], right, len(t['trials']),
            'yes' if went else 'NO'), flush=True)


def main():
    heddle, shared = os.path.abspath(sys.argv[1]), sys.argv[2]
    work = tempfile.mkdtemp()
    print('job   seed  method   best    metric place  the best   steps    bits  order')
    try:
        for name in sys.argv[3:] or CASES:
            if name != 'mlp' and not os.path.isdir(shared + '/data'):
                print('skip: no data for ' + name)
                continue
            for seed in (3, 4, 5):
                case(heddle, shared, name, seed, os.path.join(work, '%s-%d' % (name, seed)))
    finally:
        shutil.rmtree(work, ignore_errors=True)


main()
