#!/usr/bin/env python3
"""operators_kills.py HEDDLE FOLDER --kills N --seed N [--policy NAME] [--points NAME,...]

A scheduler of several users, as root, that is killed N times: at random instants, and at its failpoints.
Users hand in jobs under quotas, for one or another of their accounts, which are a tree, and in one or another
partition, alone, after one another, as arrays, held, to a step and further; an operator reserves, drains and
takes devices out; root changes users.yaml and partitions.yaml, at times to something bad, and sweeps in a
partition for an account, and the sweep is killed too. What was not answered is asked again in the next life.

At each look: no user, account with all below it, group or partition has more than its quota of devices or
running jobs, by what the scheduler says and by the processes that there are; a job has devices of its
partition alone and keeps its account; what is over stays so; what is done has all its steps; what is held has
no device; none reaches what belongs to others, or hands in a job for an account that it is not in. At the end
the audit log has the account of each order. At the end: each job that was taken is
there once and over once, after what it runs after, with a record of each step and the bits of its
undisturbed run, and the table of each sweep is the one that follows from its trials alone. A step is recorded
once; where a run lost its workers, and with them the state, its events say so (`again`, with the step of the
checkpoint), and from that step on, no other, it is recorded once more with the loss that it had. Every 50
deaths the jobs that are over are looked at so, too.

Prints what was done; exit 1 with `FAILED: ...` at the first that is not so. Shares no code with what it
judges: it knows the answers, the runs' records and `ckpt digest` alone."""
import argparse
import collections
import http.client
import json
import math
import os
import random
import shutil
import socket
import subprocess
import sys
import time

JOB = """job: {name: tiny, seed: %d, steps: %d}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [40, 40], classes: 4}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
"""
SWEEP = """job: sweep_job.yaml
method: halving
draw: grid
space: {optim.lr: [0.001, 0.01, 0.03]}
metric: {name: loss, over: 5}
steps: {min: 20, max: 60, eta: 3}
"""
KINDS = [(3, 120), (4, 200), (5, 320)]                  # seed, steps
PAUSE = 150                                             # of a job of kind 1 or 2 that goes on later
USERS = {'ada': 54321, 'bob': 54322, 'cyd': 54323, 'op': 54324}
IN = {'ada': ['red', 'blue'], 'bob': ['red'], 'cyd': ['blue']}
ABOVE = {'red': 'mid', 'mid': 'org', 'blue': 'org', 'trials': 'org', 'org': None}
ANY = math.inf
QUOTAS = {('account', 'red'): (2, 2), ('account', 'mid'): (2, ANY), ('account', 'blue'): (3, 2),
          ('account', 'trials'): (2, ANY), ('account', 'org'): (3, 3), ('user', 'bob'): (1, ANY),
          ('day', 'ada'): (2, ANY), ('day', 'bob'): (2, ANY), ('day', 'cyd'): (2, ANY),
          ('night', ''): (ANY, 2)}
# The sums that hold are the same in all of them; %s: the parent and the weight of red.
YAML = """accounts:
  red: {%s, devices: 2, running: 2, queued: 40}
  org: {devices: 3, running: 3}
  blue: {parent: org, devices: 3, running: 2, queued: 40}
  mid: {parent: org, devices: 2}
  trials: {parent: org, devices: 2}
groups:
  few: {devices: 1}
users:
  ada: {uid: 54321, accounts: [red, blue]}
  bob: {uid: 54322, account: red, groups: [few]}
  cyd: {uid: 54323, account: blue}
  op: {uid: 54324, role: operator}
"""
TREES = ('parent: mid', 'parent: mid, weight: 4', 'parent: org, weight: 2')
BAD_TREES = ('parent: rod', 'parent: red', 'parents: mid')
PARTITIONS = """partitions:
  day: {devices: [a, b-0], default: true, priority: 10, preempt: [night], user_devices: 2}
  night: {devices: [a, b], most_running: 2%s}
  lone: {devices: [b-1], accounts: [mid], job_devices: 1}
"""
NIGHTS = ('', ', priority: 3', ', time: 10h')
BAD_NIGHTS = (', devises: [a]', ', preempt: [day]')
HAS = {'day': {'a-0', 'a-1', 'b-0'}, 'night': {'a-0', 'a-1', 'b-0', 'b-1'}, 'lone': {'b-1'}}
OVER = ('done', 'failed', 'cancelled', 'timeout')
OPEN_LEAST, OPEN_MOST = 3, 14


def fail(*what):
    raise SystemExit('FAILED: ' + ' '.join(str(w) for w in what))


class Away(Exception):
    """The scheduler did not answer: it is gone, or it goes."""


class Connection(http.client.HTTPConnection):
    """To the scheduler's socket, as the account `uid`: the kernel says whose it is."""

    def __init__(self, path, uid):
        super().__init__('localhost', timeout=60)
        self.path, self.uid = path, uid

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        os.setegid(self.uid)
        os.seteuid(self.uid)
        try:
            self.sock.connect(self.path)
        finally:
            os.seteuid(0)
            os.setegid(0)


class Taken:
    """An order, and what may become of it."""

    def __init__(self, user, kind, body, until=None):
        self.user, self.kind, self.body = user, kind, body
        self.until = until                  # it is done at this step
        self.ids = []                       # once it is answered
        self.after = []                     # orders that it runs after
        self.may_cancel = self.must_cancel = False
        self.hold_asked = self.hold_said = self.seen_held = False
        self.goes_on = None                 # the order that goes on in its run
        self.audited = False
        self.account = body.get('account')  # asked for, or as it was taken


class World:
    def __init__(self, a):
        self.a, self.dir, self.rng = a, os.path.join(a.folder, 'D'), random.Random(a.seed)
        self.daemon = self.sweeper = None
        self.sweeps = 0                     # that were begun
        self.resting = False                # what is there ends, nothing begins
        self.orders, self.unanswered = [], collections.deque()
        self.over, self.state = {}, {}      # by id
        self.owner = {}                     # id -> order
        self.windows, self.out = set(), set()
        self.refused = collections.Counter()
        self.deaths, self.acts = collections.Counter(), collections.Counter()
        self.over_quota = {}                # by the processes: since when
        self.why = collections.defaultdict(set)
        self.numbers = 0
        self.forged = collections.Counter()
        self.full = collections.Counter()   # looks at which a quota was used up

    # ---- the scheduler ----

    def put_file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path + '.new', 'w') as f:
            f.write(text)
        os.chmod(path + '.new', 0o600)
        os.rename(path + '.new', path)

    def put_files(self, trees=TREES, nights=NIGHTS):
        self.put_file('users.yaml', YAML % self.rng.choice(trees))
        self.put_file('partitions.yaml', PARTITIONS % self.rng.choice(nights))

    def serve(self, point=None):
        self.put_files()                    # a bad one begins no scheduler
        env = dict(os.environ)
        env.pop('HD_FAIL', None)
        if point:
            env['HD_FAIL'] = point
        log = open(os.path.join(self.a.folder, 'serve.err'), 'ab')
        self.daemon = subprocess.Popen(
            [self.a.heddle, 'serve', '--dir', self.dir, '--pool', 'a:2,b:2', '--policy', self.a.policy,
             '--round', '0.5', '-q'], env=env, stdout=log, stderr=log, start_new_session=True)
        log.close()

    def lives(self):
        return self.daemon is not None and self.daemon.poll() is None

    def kill(self):
        if self.lives():
            self.daemon.kill()
        self.daemon.wait()

    def ask(self, user, method, path, body=None):
        c = Connection(os.path.join(self.dir, 'heddle.sock'), USERS.get(user, 0))
        try:
            c.request(method, path, None if body is None else json.dumps(body),
                      {'Content-Type': 'application/json'} if body is not None else {})
            answer = c.getresponse()
            got = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as e:
            if self.lives() and isinstance(e, ValueError):
                fail(method, path, 'is answered with no JSON:', e)
            raise Away from e
        finally:
            c.close()
        if answer.status >= 500 and answer.status != 503:
            fail(method, path, body, 'is answered with', answer.status, got)
        return answer.status, got

    def await_up(self):
        end = time.monotonic() + 600
        while self.lives():
            try:
                self.ask('root', 'GET', '/v1/status')
                return True
            except Away:
                if time.monotonic() > end:
                    fail('the scheduler neither answers nor ends')
                time.sleep(0.03)
        return False

    # ---- acts: each is asked until it is answered ----

    def number(self):
        self.numbers += 1
        return self.numbers

    def submit(self):
        r, user = self.rng, self.rng.choice(['ada', 'bob', 'cyd'])
        kind, n = r.randrange(len(KINDS)), self.number()
        body = {'job': JOB % KINDS[kind], 'folder': os.path.join(self.a.folder, 'homes', user),
                'key': 'order-%d' % n, 'name': 'j-%d' % n, 'priority': r.choice([1, 1, 2, 5])}
        if r.random() < 0.5:
            body['account'] = r.choice(IN[user])
        part = r.choice(['', 'day', 'night', 'night', 'lone'])
        if part:
            body['partition'] = part
        order = Taken(user, kind, body)
        own = [o for o in self.orders if o.user == user and o.ids and not o.may_cancel and not o.until]
        draw = r.random()
        if draw < 0.15:
            body['array'] = r.choice(['0-2%1', '0-3%2', '1,3'])
            body['name'] += '-{index}'
        elif draw < 0.3 and part != 'lone':
            body['scale'] = {'ada': 2, 'bob': 1, 'cyd': 2}[user]
            body['max'] = body['scale']
        elif draw < 0.4 and kind:
            order.until = body['until'] = PAUSE
        if own and r.random() < 0.4:
            order.after = r.sample(own, min(len(own), r.choice([1, 1, 2])))
            body['after'] = ['%d:%s' % (o.ids[0], r.choice(['ok', 'any'])) for o in order.after]
        if r.random() < 0.15:
            body['held'] = True
            order.hold_asked = order.hold_said = True
        if r.random() < 0.3:
            body['expect_s'], body['limit_s'] = 2.5, 36000
        self.send_order(order, '/v1/jobs')

    def send_order(self, order, path):
        def send():
            status, got = self.ask(order.user, 'POST', path, order.body)
            if status != 200:
                if order.ids:
                    fail('an order that was taken is refused:', got)
                if 'key' in got.get('error', '') and status == 409:
                    fail('a key is of another order:', got)
                self.refused[got['error'].split(':')[0][:40]] += 1
                return
            order.ids = list(range(got['id'], got['id'] + max(1, got.get('tasks', 0))))
            if got['account'] != (order.account or got['account']) or got['account'] not in IN[order.user]:
                fail('an order of', order.user, 'for', order.account, 'counts to', got['account'], got)
            order.account = got['account']
            self.orders.append(order)
            for i in order.ids:
                if i in self.owner:
                    fail('two orders are job', i, order.body, self.owner[i].body)
                self.owner[i] = order
        self.attempt('submit' if path == '/v1/jobs' else 'continue', send)

    def attempt(self, name, send):
        self.acts[name] += 1
        self.unanswered.append(send)
        self.flush()

    def flush(self):
        while self.unanswered:
            self.unanswered[0]()            # Away: the next life asks again
            self.unanswered.popleft()

    def change(self, what):
        live = [o for o in self.orders if any(i not in self.over for i in o.ids)]
        if what == 'release':
            live = [o for o in live if o.hold_asked]
        if not live:
            return
        order = self.rng.choice(live)
        self.change_order(what, order)

    def change_order(self, what, order):
        by = self.rng.choice([order.user, 'op'])
        body = {'tasks': True} if len(order.ids) > 1 and what in ('cancel', 'hold', 'release') else {}
        if what == 'prio':
            body = {'priority': self.rng.choice([0.5, 1, 3])}
        if what == 'scale':
            body = {'scale': self.rng.choice([1, 2])}
        if what == 'cancel':
            order.may_cancel = True
        if what == 'hold':
            order.hold_asked = True
        if what == 'release':
            order.hold_asked = order.hold_said = order.seen_held = False
        path = '/v1/jobs/%d/%s' % (order.ids[0], 'priority' if what == 'prio' else what)

        def send():
            status, got = self.ask(by, 'POST', path, body)
            if status == 200 and what == 'cancel' and len(order.ids) == 1 and got['state'] == 'cancelled':
                order.must_cancel = True
            if status == 200 and what == 'hold' and order.hold_asked:
                order.hold_said = True
            if status == 404:
                fail('job', order.ids[0], 'is lost:', got)
        self.attempt(what, send)

    def go_on(self):
        paused = [o for o in self.orders if o.until and not o.goes_on and not o.may_cancel and
                  self.over.get(o.ids[0]) == 'done']
        if not paused:
            return
        first = self.rng.choice(paused)
        order = Taken(first.user, first.kind, {'until': KINDS[first.kind][1],
                                               'key': 'on-%d' % self.number()})
        order.account = first.account       # of the run that it goes on in
        order.after = [first]
        first.goes_on = order
        self.send_order(order, '/v1/jobs/%d/continue' % first.ids[0])

    def window(self):
        r, name = self.rng, 'w-%d' % self.number()
        body = {'window': name, 'kind': r.choice(['drain', 'maintenance', 'reserved']),
                'devices': [r.choice(['a:1', 'b:1', 'a-0', 'b-1'])], 'reason': 'kills',
                'from_s': r.choice([0, 0, 1, 2]), 'for_s': r.choice([1, 2, 4])}
        if body['kind'] == 'reserved':
            body.update(r.choice([{'user': 'ada'}, {'account': 'blue'}]))
        self.attempt('window', lambda: self.ask('op', 'POST', '/v1/windows', body))

    def device(self):
        name = self.rng.choice(['a-0', 'a-1', 'b-0', 'b-1'])
        usable = name in self.out

        def send():
            self.ask('op', 'POST', '/v1/devices/' + name, {'usable': usable})
            (self.out.discard if usable else self.out.add)(name)
        if usable or len(self.out) < 2:
            self.attempt('device', send)

    def trespass(self):
        """By a user that may not."""
        others = [(o, u) for o in self.orders[-20:] for u in ('ada', 'bob', 'cyd') if u != o.user]
        if not others:
            return
        order, user = self.rng.choice(others)
        what = self.rng.choice(['cancel', 'hold', 'priority', ''])
        status, got = self.ask(user, 'POST' if what else 'GET', '/v1/jobs/%d%s' % (
            order.ids[0], '/' + what if what else ''), {'priority': 1} if what == 'priority' else
            {} if what else None)
        if status != 404:
            fail(user, 'may', what or 'see', 'job', order.ids[0], 'of', order.user, status, got)
        status, got = self.ask(user, 'POST', '/v1/stop', {})
        if status != 403:
            fail(user, 'may end the scheduler:', status, got)
        account = self.rng.choice(sorted((set(ABOVE) | {'nothing'}) - set(IN[user])))
        status, got = self.ask(user, 'POST', '/v1/jobs', {'job': JOB % KINDS[0], 'folder': '/',
                                                          'name': 'forged', 'account': account})
        if status != 400 or 'ACCOUNT' not in got['error']:
            fail(user, 'may hand in a job for', account, status, got)
        self.forged[user, account] += 1
        self.acts['trespass'] += 1

    def reload(self):
        if self.rng.random() < 0.3:
            self.put_files(BAD_TREES, BAD_NIGHTS)
            time.sleep(self.rng.random() * 0.5)
            self.acts['bad files'] += 1
        self.put_files()
        self.acts['other files'] += 1

    def sweep(self):
        """One at a time; what ends badly but by our kill is no good sweep."""
        if self.sweeper is not None:
            code = self.sweeper.poll()
            if code is None:
                if not self.resting and self.rng.random() < 0.1:
                    self.sweeper.kill()
                    self.sweeper.wait()
                    self.acts['sweep killed'] += 1
                    self.begin_sweep()
                return
            if code == 3 and 'does not serve now' in self.said_last():
                self.begin_sweep()            # it came while the scheduler was away
                return
            if code:
                fail('sweep', self.sweeps, 'ends with', code, self.said_last())
            self.sweeper = None
        if not self.resting and (self.rng.random() < 0.4 or not self.sweeps):
            self.sweeps += 1
            self.acts['sweep'] += 1
            self.begin_sweep()

    def said_last(self):
        with open(os.path.join(self.a.folder, 'sweep.err')) as f:
            return f.read()[-2000:]

    def begin_sweep(self):
        where = ['--partition', 'night', '--account', 'trials'] if self.sweeps % 2 else []
        with open(os.path.join(self.a.folder, 'sweep.err'), 'wb') as log:
            self.sweeper = subprocess.Popen(
                [self.a.heddle, 'sweep', 'sweep.yaml', '--dir', self.dir, '--name', 's%d' % self.sweeps,
                 '-q', *where], cwd=self.a.folder, stdout=log, stderr=log, start_new_session=True)

    # ---- looks ----

    def jobs(self, after=0):
        more = True
        while more:
            status, page = self.ask('root', 'GET', '/v1/jobs?limit=1000&after=%d' % after)
            if status != 200:
                fail('a page of jobs:', status, page)
            for j in page['jobs']:
                yield j
                after = j['id']
            more = page['more']

    def look(self):
        still = [i for i in self.owner if i not in self.over]
        had = collections.Counter()
        part = {}
        for j in self.jobs(min(still, default=max(self.owner, default=1)) - 1):
            self.judge(j)
            part[j['id']] = j['partition']
            for limit in self.limits(j['user'], self.account_of(j), j['partition']) if j['devices_n'] else ():
                had[limit, 0] += j['devices_n']
                had[limit, 1] += 1
        for limit, most in QUOTAS.items():
            for k in (0, 1):
                self.full[limit] += had[limit, k] == most[k]
                if had[limit, k] > most[k]:
                    fail('%s %s has %d %s and may have %s' % (
                        *limit, had[limit, k], ('devices', 'running jobs')[k], most[k]))
        for d in self.ask('root', 'GET', '/v1/pools')[1]['devices']:
            if d['job'] in part and d['name'] not in HAS[part[d['job']]]:
                fail('job', d['job'], 'of partition', part[d['job']], 'has', d['name'])
        self.look_at_processes()

    def account_of(self, j):
        """By what was ordered: of a sweep's job that which the sweep was begun with."""
        order = self.owner.get(j['id'])
        if order:
            return order.account
        number = j['name'].split('-')[0][1:]
        return 'trials' if number.isdigit() and int(number) % 2 else ''

    @staticmethod
    def limits(user, account, partition=''):
        """The quotas that a job counts in, along the tree."""
        of = [('user', user), ('day', user if partition == 'day' else None),
              ('night', '' if partition == 'night' else None)]
        while account:
            of.append(('account', account))
            account = ABOVE[account]
        return [q for q in QUOTAS if q in of]

    def judge(self, j):
        i, order = j['id'], self.owner.get(j['id'])
        was = self.over.get(i)
        if was and j['state'] != was:
            fail('job', i, 'was', was, 'and is', j['state'])
        if j['state'] in OVER:
            self.over[i] = j['state']
        if order is None:
            return
        steps = order.until or KINDS[order.kind][1]
        if j['account'] != order.account:
            fail('job', i, 'for', order.account, 'counts to', j['account'])
        if j['user'] != order.user:
            fail('job', i, 'of', order.user, 'is', j['user'] + "'s")
        if j['state'] == 'done' and j['step'] != steps:
            fail('job', i, 'is called done at step', j['step'], 'of', steps)
        if j['state'] in ('failed', 'timeout'):
            fail('job', i, 'is', j['state'], j['why'])
        code = j['why'].split(':')[0]
        if code.isupper():
            self.why[code].add(i)
        if order.seen_held and order.hold_said and j['devices_n']:
            fail('job', i, 'is held and has devices', j)
        if order.hold_said and len(order.ids) == 1 and j['state'] == 'queued' and j['held']:
            order.seen_held = True

    def look_at_processes(self):
        """Workers by the machine's table of processes; one that ends may be there for a moment."""
        count, now = collections.defaultdict(list), time.monotonic()
        for p in os.listdir('/proc'):
            if not p.isdigit():
                continue
            try:
                with open('/proc/%s/cmdline' % p, 'rb') as f:
                    line = f.read().decode(errors='replace')
                with open('/proc/%s/stat' % p) as f:
                    state = f.read().rsplit(')', 1)[1].split()[0]
            except OSError:
                continue
            at = line.find(self.dir + '/runs/')
            if at < 0 or '\0worker\0' not in line or state in 'ZX':
                continue
            number = line[at + len(self.dir) + 6:].split('-')[0]
            order = self.owner.get(int(number)) if number.isdigit() else None
            for limit in self.limits(order.user, order.account) if order else ():
                count[limit].append(p)
        for limit, most in QUOTAS.items():
            if len(count[limit]) <= most[0]:
                self.over_quota.pop(limit, None)
                continue
            since, pids = self.over_quota.get(limit, (now, set(count[limit])))
            pids = pids & set(count[limit])
            self.over_quota[limit] = since, pids
            if len(pids) > most[0] and now - since > 30:
                fail('%s %s has workers' % limit, *pids, 'for', now - since, 's and may have', most[0])

    # ---- one life ----

    def act(self):
        still = sum(i not in self.over for i in self.owner)
        if still < OPEN_LEAST:
            self.submit()
            return
        what = self.rng.choices(
            ['submit', 'cancel', 'hold', 'release', 'prio', 'scale', 'go_on', 'window', 'device',
             'trespass', 'sweep', 'reload'],
            [5 if still < OPEN_MOST else 0, 0.5, 1, 3, 2, 1, 2, 1.5, 1.5, 2, 2, 1])[0]
        if what in ('cancel', 'hold', 'release', 'prio', 'scale'):
            self.change(what)
        else:
            getattr(self, what)()

    def rest_for(self, s):
        end = time.monotonic() + s
        while self.lives() and time.monotonic() < end:
            time.sleep(0.02)

    def life(self, k):
        where, fail_at = 'instant', None
        if k % 2 and self.a.points:
            where = self.a.points[k // 2 % len(self.a.points)]
            fail_at = where + ':kill' + ('' if where == 'daemon.open' else '@%d' % self.rng.randint(1, 6))
        self.serve(fail_at)
        acts, rest_s = self.rng.randint(2, 14), self.rng.choice([0, 0, 0.4, 0.9])
        try:
            if self.await_up():
                self.flush()
                self.look()
                if k % 50 == 49:
                    self.audit_over()
                if not self.sweeps:
                    self.sweep()
                for _ in range(acts):
                    self.act()
                    self.look()
                    time.sleep(self.rng.random() * 0.08)
                self.rest_for(rest_s + (1 if fail_at else 0))
        except Away:
            pass
        if self.lives():
            where = 'instant'
        elif not fail_at or self.daemon.returncode != -9:
            fail('life %d: the scheduler ended by itself with %s' % (k, self.daemon.returncode))
        self.kill()
        self.deaths[where] += 1

    # ---- the end ----

    def rest(self):
        """Everything goes, and is waited for."""
        self.resting = True
        self.serve()
        if not self.await_up():
            fail('the scheduler does not start')
        self.flush()
        for name in list(self.out):
            self.ask('op', 'POST', '/v1/devices/' + name, {'usable': True})
        for order in self.orders:
            if order.hold_asked and any(i not in self.over for i in order.ids):
                self.change_order('release', order)
        end = time.monotonic() + 1200
        while True:
            self.look()
            self.go_on()
            waits = [i for i in self.owner if i not in self.over]
            paused = any(o.until and not o.goes_on and not o.may_cancel and self.over.get(o.ids[0]) == 'done'
                         for o in self.orders)
            self.sweep()
            if not waits and not paused and self.sweeper is None:
                break
            if time.monotonic() > end:
                fail('not over:', waits[:20], self.ask('root', 'GET', '/v1/status'))
            time.sleep(0.3)

    def alone(self, job, name, steps, *sets):
        """Steps, losses and digest of the run of one device that nothing disturbs."""
        out = os.path.join(self.a.folder, name)
        subprocess.run([self.a.heddle, 'run', job, '--out', out, '-q', '--devices', '1', '--steps',
                        str(steps), *sets], check=True, cwd=self.a.folder, stderr=subprocess.DEVNULL)
        digest = subprocess.run([self.a.heddle, 'ckpt', 'digest', out], check=True, capture_output=True,
                                text=True).stdout.split()[0]
        with open(out + '/metrics.ndjson') as f:
            losses = [json.loads(line)['loss'] for line in f]
        shutil.rmtree(out)
        return losses, digest

    def wanted(self):
        """By kind and steps: the digest of the run that nothing disturbs."""
        want = {}
        for k, (seed, steps) in enumerate(KINDS):
            with open(os.path.join(self.a.folder, 'alone.yaml'), 'w') as f:
                f.write(JOB % (seed, steps))
            for at in (steps, PAUSE):
                if at == steps or k:
                    want[k, at] = self.alone('alone.yaml', 'alone-%d-%d' % (k, at), at)[1]
        return want

    def audit_over(self):
        """Those that no later job changes."""
        def is_over(order):
            return all(i in self.over for i in order.ids)
        ends = self.ends()
        for order in self.orders:
            if not order.audited and is_over(order) and not order.until and not any(
                    o.goes_on for o in order.after) and all(is_over(o) for o in order.after):
                for i in order.ids:
                    self.audit_job(order, i, ends)
                order.audited = True

    def audit(self):
        there = collections.Counter(j['id'] for j in self.jobs())
        lost = [i for i in self.owner if there[i] != 1]
        if lost:
            fail('jobs that were taken are there', [there[i] for i in lost], 'times:', lost)
        more = [j for j in self.jobs() if j['id'] not in self.owner and not j['name'].startswith('s')]
        if more:
            fail('jobs that no order made:', more[:3])
        ends = self.ends()
        for order in self.orders:
            for i in order.ids:
                self.audit_job(order, i, ends)
        for n in range(1, self.sweeps + 1):
            self.audit_sweep(n)
        self.audit_log()
        done = [i for i in self.owner if self.over[i] == 'done']
        print('jobs %d, of which done %d, cancelled %d; sweeps %d with %d jobs' % (
            len(self.owner), len(done), len(self.owner) - len(done), self.sweeps,
            sum(there.values()) - len(self.owner)))
        print('acts: ' + ', '.join('%s %d' % a for a in sorted(self.acts.items())))
        print('jobs that waited: ' + ', '.join('%s %d' % (k, len(v)) for k, v in sorted(self.why.items())))
        print('quotas that were used up, at so many looks: ' + ', '.join(
            '%s %s %d' % (*q, n) for q, n in sorted(self.full.items()) if n))
        print('orders that were refused: %s' % (dict(self.refused) or 'none'))
        print('deaths: ' + ', '.join('%s %d' % d for d in sorted(self.deaths.items())))

    def audit_log(self):
        """Each order that was taken, and each forged account, is there with its account."""
        there, want = collections.Counter(), collections.Counter()
        with open(os.path.join(self.dir, 'audit.ndjson')) as f:
            for text in f:
                line = json.loads(text)
                if line['what'] in ('submit', 'continue'):
                    there[line['user'], line.get('account'), line['status']] += 1
        for order in self.orders:
            want[order.user, order.account, 200] += 1
        for (user, account), n in self.forged.items():
            want[user, account, 400] += n
        for what, n in want.items():
            if there[what] < n:
                fail('the audit log has', there[what], 'of', n, 'lines of', what)

    def ends(self):
        count, after = collections.Counter(), 0
        while True:
            _, page = self.ask('root', 'GET', '/v1/events/past?limit=1000&after=%d' % after)
            for e in page['events']:
                after = e['number']
                if e['kind'] in OVER:
                    count[e['job']] += 1
            if len(page['events']) < 1000:
                return count

    def audit_job(self, order, i, ends):
        _, j = self.ask('root', 'GET', '/v1/jobs/%d' % i)
        state, steps = self.over[i], order.until or KINDS[order.kind][1]
        if ends[i] != 1:
            fail('job', i, 'has', ends[i], 'ends')
        if order.must_cancel and state != 'cancelled':
            fail('job', i, 'was cancelled and is', state)
        broken = any(self.over[d] != 'done' for o in order.after for d in o.ids)
        if state == 'cancelled' and not order.may_cancel and not broken:
            fail('job', i, 'is cancelled, and no user asked for it:', j['why'])
        try:
            with open(j['run'] + '/metrics.ndjson') as f:
                lines = [json.loads(line) for line in f]
            with open(j['run'] + '/events.ndjson') as f:
                events = [json.loads(line) for line in f]
        except FileNotFoundError:
            lines, events = [], []
        seen = self.audit_lines(i, lines, [e['step'] for e in events if e['kind'] == 'again'])
        if state != 'done':
            return
        last = order.goes_on.body['until'] if order.goes_on and order.goes_on.ids else steps
        if order.goes_on and self.over.get((order.goes_on.ids or [0])[0]) != 'done':
            last = None                       # as far as that one came
        if j['digest'] != self.want[order.kind, steps]:
            fail('digest of job', i, j['digest'], 'is not that of its undisturbed run',
                 self.want[order.kind, steps])
        if last and len(seen) != last:
            fail('job', i, 'has a record of', len(seen), 'of', last, 'steps')
        for o in order.after:
            for d in o.ids:
                before = self.ask('root', 'GET', '/v1/jobs/%d' % d)[1]
                if j['started_s'] < before['ended_s']:
                    fail('job', i, 'began at', j['started_s'], 'and job', d, 'ended at', before['ended_s'])

    def audit_lines(self, i, lines, again):
        """Its steps. One that a run has gone back to was said to be, in this order; what was said may have
        come to nothing, where the run died before it had a step."""
        loss, last, said = {}, -1, iter(again)
        for line in lines:
            step = line['step']
            if step <= last:
                if step not in said:                    # takes what was said up to it
                    fail('job', i, 'has a record of step', step, 'behind that of step', last,
                         'and said that it goes back to', again)
                self.acts['run went back'] += 1
            elif step != last + 1:
                fail('job', i, 'has no record of steps', last + 1, 'to', step - 1)
            if loss.setdefault(step, line['loss']) != line['loss']:
                fail('step', step, 'of job', i, 'has two losses')
            last = step
        return set(loss)

    def audit_sweep(self, n):
        if not hasattr(self, 'trial'):
            self.trial = {}
            for i, lr in enumerate(('0.001', '0.01', '0.03')):
                for steps in (20, 60):
                    self.trial[i, steps] = self.alone('sweep_job.yaml', 'trial-%d-%d' % (i, steps), steps,
                                                      '-s', 'optim.lr=' + lr)
        at = {i: math.fsum(self.trial[i, 20][0][15:]) / 5 for i in range(3)}
        best = min(at, key=lambda i: (at[i], i))
        with open(os.path.join(self.dir, 'sweeps', 's%d' % n, 'table.json')) as f:
            table = json.load(f)
        for i, row in enumerate(table['trials']):
            steps = 60 if i == best else 20
            if row['steps'] != steps or row['digest'] != self.trial[i, steps][1] or row['state'] != (
                    'done' if i == best else 'stopped'):
                fail('sweep', n, 'trial', i, row, self.trial[i, steps][1])
        if table['best'] != best or not table['over']:
            fail('sweep', n, 'has the best', table['best'], 'and not', best)

    def clear_out(self):
        """Ends what this test started, by what lies in its folder."""
        for p in (self.sweeper, self.daemon):
            if p is not None and p.poll() is None:
                p.kill()
                p.wait()
        for _ in range(3):
            for p in os.listdir('/proc'):
                try:
                    if p.isdigit() and self.dir.encode() in open('/proc/%s/cmdline' % p, 'rb').read():
                        os.kill(int(p), 9)
                except OSError:
                    pass
            time.sleep(0.2)


def prepare(w):
    os.chmod(w.a.folder, 0o711)
    os.makedirs(os.path.join(w.a.folder, 'homes'))
    for user, uid in USERS.items():
        home = os.path.join(w.a.folder, 'homes', user)
        os.mkdir(home)
        os.chown(home, uid, uid)
    os.mkdir(w.dir, 0o700)
    with open(os.path.join(w.a.folder, 'sweep_job.yaml'), 'w') as f:
        f.write(JOB % (9, 60))
    with open(os.path.join(w.a.folder, 'sweep.yaml'), 'w') as f:
        f.write(SWEEP)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('heddle')
    p.add_argument('folder', help='a new one')
    p.add_argument('--kills', type=int, default=20)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--policy', default='fifo')
    p.add_argument('--points', type=lambda s: [x for x in s.split(',') if x], default=[])
    w = World(p.parse_args())
    prepare(w)
    w.want = w.wanted()
    try:
        for k in range(w.a.kills):
            w.life(k)
            if k % 50 == 49:
                print('%d deaths, %d jobs, %d sweeps' % (k + 1, len(w.owner), w.sweeps), flush=True)
        w.rest()
        w.audit()
    finally:
        w.clear_out()


main()
