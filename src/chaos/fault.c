#include "chaos/fault.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "worker/elastic.h"

/* In T: how long an order waits for the worker it was given to, before it is for all; and for a loss that is
 * to trigger it. */
enum { HD_ORDER_OWN_T = 3, HD_ORDER_TRIGGER_T = 5, HD_ORDERS_BYTES = 4000, HD_SCALE_TRIES = 3 };

const char *const hd_fault_name[HD_FAULTS] = {
#define X(id, name, what) name,
	HD_FAULTS_TABLE(X)
#undef X
};
const char *const hd_fault_how_name[HD_HOWS] = { "cut", "drop", "delay", "full", "error", "slow" };

bool hd_fault_orders(enum hd_fault_kind kind) { return kind == HD_FAULT_POINT || kind == HD_FAULT_NET ||
	kind == HD_FAULT_DISK; }

enum hd_err hd_fault_init(struct hd_faults *f, struct hd_harness *harness, int64_t detect_ns, bool needs,
	struct hd_diag *diag)
{
	*f = (struct hd_faults){ .harness = harness, .detect_ns = detect_ns };
	if ((size_t)snprintf(f->folder, sizeof f->folder, "%s/" HD_FAULT_FOLDER,
		harness->dir) >= sizeof f->folder)
		return hd_fail(diag, HD_E_INVAL, "the path of %s is too long", harness->dir);
	if (needs && !hd_failpoint_built())
		return hd_fail(diag, HD_E_REFUSED,
			"this build has no failpoints, which %s, %s and %s need: configure with "
			"-DHD_FAILPOINTS=ON, "
			"or ask for %s, %s, %s or %s", hd_fault_name[HD_FAULT_POINT],
			hd_fault_name[HD_FAULT_NET], hd_fault_name[HD_FAULT_DISK],
			hd_fault_name[HD_FAULT_KILL], hd_fault_name[HD_FAULT_PAUSE],
			hd_fault_name[HD_FAULT_SLOW], hd_fault_name[HD_FAULT_SCALE]);
	return HD_OK;
}

void hd_fault_draw(struct hd_fault *fault, enum hd_fault_kind kind, const uint32_t draw[4],
	uint32_t most_workers, uint32_t npoints,
	int64_t detect_ns)
{
	const uint32_t which = draw[3] & 0xffff, length = draw[3] >> 16;

	*fault = (struct hd_fault){ .kind = kind, .pick = draw[0], .part = draw[1], .other = draw[2],
		.for_ns = detect_ns };
	switch (kind) {
	case HD_FAULT_PAUSE:              /* from half of T to four: some are noticed, some not */
		fault->for_ns = detect_ns / 2 + detect_ns / 2 * 7 * length / 65536;
		break;
	case HD_FAULT_SLOW:
		fault->by = 2 + which % 3;
		fault->for_ns = 2 * detect_ns + 4 * detect_ns * length / 65536;
		break;
	case HD_FAULT_NET:
		fault->how = HD_HOW_CUT + which % 3;
		fault->for_ns = detect_ns / 4 + 3 * detect_ns * length / 65536;
		break;
	case HD_FAULT_DISK:
		fault->how = HD_HOW_FULL + which % 3;
		fault->for_ns = 2 * detect_ns + 4 * detect_ns * length / 65536;
		break;
	case HD_FAULT_SCALE:
		fault->by = 1 + which % most_workers;
		break;
	case HD_FAULT_POINT:
		fault->point = which % npoints;
		break;
	case HD_FAULT_KILL: case HD_FAULTS:
		break;
	}
}

/* ---- targets ---- */

static struct hd_clock *clock_of(const struct hd_faults *f) { return f->harness->clock; }

/* Rows without a pid are of other machines, or of workers that never called this coordinator. */
static uint32_t nprocesses(const struct hd_status *live)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < live->nworkers; i++)
		n += live->worker[i].pid > 0;
	return n;
}

/* The nth of them. */
static const struct hd_status_worker *process(const struct hd_status *live, uint32_t nth)
{
	const struct hd_status_worker *w = live->worker;

	for (;; w++)
		if (w->pid > 0 && nth-- == 0)
			return w;
}

/* One of those that are known to live; the coordinator stands behind the workers. 0: none. */
static int64_t victim(const struct hd_faults *f, enum hd_fault_target target, uint32_t pick,
	bool *coordinator)
{
	const struct hd_harness *t = f->harness;
	uint32_t workers = target == HD_TARGET_COORDINATOR ? 0 : nprocesses(&t->live),
		n = workers + (target != HD_TARGET_WORKER && t->coordinator > 0);

	*coordinator = n && pick % n == workers;
	return !n ? 0 : *coordinator ? t->coordinator : process(&t->live, pick % n)->pid;
}

static struct hd_fault_open *open_of(struct hd_faults *f, int64_t pid)
{
	for (uint32_t i = 0; i < HD_FAULTS_OPEN; i++)
		if (f->open[i].pid == pid)
			return &f->open[i];
	return NULL;
}

/* A process must be left that can go on: the coordinator, or a worker that can start one. */
static bool may_kill(const struct hd_faults *f)
{
	return f->harness->heard || nprocesses(&f->harness->live) > f->kills_since_reply + 1;
}

static bool kill_one(struct hd_faults *f, enum hd_fault_target target, uint32_t pick)
{
	bool coordinator;
	int64_t pid = may_kill(f) ? victim(f, target, pick, &coordinator) : 0;

	if (!pid || hd_pid_signal((int)pid, HD_PROC_KILL))
		return false;
	f->done[HD_FAULT_KILL]++;
	f->kills_since_reply++;
	f->coordinators += coordinator;
	if (coordinator)
		f->harness->coordinator = 0;
	f->harness->heard = false;
	return true;
}

/* ---- orders ---- */

static bool order(struct hd_faults *f, int64_t pid, const char *what)
{
	struct hd_fs *fs = f->harness->fs;
	char path[HD_PATH_CAP + 32], line[HD_ORDERS_BYTES + 2];

	snprintf(line, sizeof line, "%s\n", what);
	if (pid)
		snprintf(path, sizeof path, "%s/%lld", f->folder, (long long)pid);
	else
		snprintf(path, sizeof path, "%s/any", f->folder);
	return !hd_fs_mkdirs(fs, f->folder, NULL) && !hd_file_write_atomic(fs, path, line, strlen(line),
		NULL);
}

static void withdraw(struct hd_faults *f, int64_t pid)
{
	char path[HD_PATH_CAP + 32];

	if (pid)
		snprintf(path, sizeof path, "%s/%lld", f->folder, (long long)pid);
	else
		snprintf(path, sizeof path, "%s/any", f->folder);
	(void)!hd_fs_unlink(f->harness->fs, path, NULL);
}

/* An order of its own is for what every worker does in each step; which of them reaches the others, as those
 * about the slots of a bucket, is not known beforehand. */
static bool of_every_step(enum hd_failpoint point)
{
	const enum hd_fp_phase phase = hd_failpoint_phase(point);

	return point != HD_FP_COMPUTE_AGAIN && point != HD_FP_WIRE_CONNECT && point < HD_FP_OF_WHOLE &&
		hd_failpoint_role(point) != HD_FP_COORDINATOR &&
		phase <= HD_FP_PHASE_GATE;
}

/* The worker that an order of its own waits for; 0: none does. */
static int64_t ordered(const struct hd_faults *f)
{
	for (uint32_t p = 0; p < HD_FP_COUNT; p++)
		if (f->order[p].placed && !f->order[p].wide)
			return f->order[p].pid;
	return 0;
}

static bool place(struct hd_faults *f, const struct hd_fault *fault)
{
	struct hd_fault_order *o = &f->order[fault->point];
	char what[64];
	bool coordinator;

	if (o->placed)
		return false;
	if (of_every_step(fault->point)) {
		int64_t pid = ordered(f) ? 0 : victim(f, HD_TARGET_WORKER, fault->pick, &coordinator);
		if (!pid || open_of(f, pid))
			return false;
		snprintf(what, sizeof what, "%s:kill@%u", hd_failpoint_name(fault->point),
			1 + fault->other % 3);
		if (!order(f, pid, what))
			return false;
		o->pid = pid;
	}
	o->placed = true;
	o->wide = !of_every_step(fault->point);
	o->since_ns = hd_clock_now_ns(clock_of(f));
	f->stale |= o->wide;
	return true;
}

/* hit.NAME.PID: a process died there. */
static void look_for_hits(struct hd_faults *f)
{
	struct hd_fs *fs = f->harness->fs;
	char path[HD_PATH_CAP + 300];
	struct hd_arena arena;
	char **names;
	size_t n = 0;

	hd_arena_init(&arena, 0);
	if (hd_fs_list(fs, f->folder, &arena, &names, &n, NULL))
		n = 0;
	for (size_t i = 0; i < n; i++) {
		const char *dot = strrchr(names[i], '.');
		for (uint32_t p = 0; !strncmp(names[i], "hit.", 4) && p < HD_FP_COUNT; p++) {
			const char *name = hd_failpoint_name(p);
			if ((size_t)(dot - names[i]) != 4 + strlen(name) ||
				strncmp(names[i] + 4, name, strlen(name)) != 0)
				continue;
			f->killed[p]++;
			f->done[HD_FAULT_POINT]++;
			f->kills_since_reply++;
			f->harness->heard = false;
			f->order[p].placed = false;
			f->stale = true;          /* those to all went with it, if it was one of them */
			snprintf(path, sizeof path, "%s/%s", f->folder, names[i]);
			(void)!hd_fs_unlink(fs, path, NULL);
		}
	}
	hd_arena_finish(&arena);
}

/* One that its worker did not reach is for all. */
static void widen(struct hd_faults *f, int64_t now)
{
	for (uint32_t p = 0; p < HD_FP_COUNT; p++) {
		struct hd_fault_order *o = &f->order[p];
		if (!o->placed || o->wide || now - o->since_ns < HD_ORDER_OWN_T * f->detect_ns)
			continue;
		withdraw(f, o->pid);
		o->wide = f->stale = true;
	}
}

static void write_wide(struct hd_faults *f)
{
	char what[HD_ORDERS_BYTES];
	size_t at = 0;

	for (uint32_t p = 0; p < HD_FP_COUNT && at < sizeof what - 64; p++)
		if (f->order[p].placed && f->order[p].wide)
			at += (size_t)snprintf(what + at, sizeof what - at, "%s%s:kill@1", at ? ";" : "",
				hd_failpoint_name(p));
	if (!at)
		withdraw(f, 0);
	f->stale = at && !order(f, 0, what);
}

/* One that only a loss reaches, and that has waited for one. */
static bool wants_loss(const struct hd_faults *f, uint32_t p, int64_t now)
{
	const struct hd_fault_order *o = &f->order[p];

	return o->placed && o->wide && !of_every_step(p) && hd_failpoint_phase(p) != HD_FP_PHASE_CHECKPOINT &&
		now - o->since_ns >= 2 * f->detect_ns;
}

static void trigger(struct hd_faults *f, int64_t now)
{
	enum hd_fault_target target = HD_TARGET_WORKER;
	bool wanted = false;

	for (uint32_t p = 0; p < HD_FP_COUNT; p++)
		wanted |= wants_loss(f, p, now);
	if (!wanted || now - f->triggered_ns < HD_ORDER_TRIGGER_T * f->detect_ns)
		return;
	if (wants_loss(f, HD_FP_CHANGE_TAKE_OVER, now) && f->triggered % 2 == 0)
		target = HD_TARGET_COORDINATOR;
	if (kill_one(f, target, f->triggered)) {
		f->triggered++;
		f->triggered_ns = now;
	} else if (f->harness->ours && f->harness->live.target < f->harness->workers) {
		(void)!hd_harness_ask(f->harness, "{\"do\":\"scale\",\"by\":1}");
	}
}

static void turn_orders(struct hd_faults *f, int64_t now)
{
	bool some = f->stale;

	for (uint32_t p = 0; p < HD_FP_COUNT && !some; p++)
		some = f->order[p].placed;
	if (!some)
		return;
	look_for_hits(f);
	widen(f, now);
	if (f->stale && f->harness->heard)
		write_wide(f);
	trigger(f, now);
}

/* ---- those that last ---- */

static bool begin(struct hd_faults *f, const struct hd_fault *fault, int64_t pid)
{
	const int64_t now = hd_clock_now_ns(clock_of(f));
	struct hd_fault_open *o = open_of(f, pid) ? NULL : open_of(f, 0);

	if (!pid || !o)
		return false;
	*o = (struct hd_fault_open){ .kind = fault->kind, .pid = pid, .until_ns = now + fault->for_ns,
		.turn_ns = now, .by = fault->by };
	return true;
}

static bool do_kill(struct hd_faults *f, const struct hd_fault *fault) { return kill_one(f, fault->target,
	fault->pick); }
static bool do_point(struct hd_faults *f, const struct hd_fault *fault) { return place(f, fault); }

static bool do_pause(struct hd_faults *f, const struct hd_fault *fault)
{
	bool coordinator;
	int64_t pid = victim(f, fault->target, fault->pick, &coordinator);

	if (!begin(f, fault, pid))
		return false;
	open_of(f, pid)->stopped = true;
	open_of(f, pid)->turn_ns += fault->for_ns;
	(void)!hd_pid_signal((int)pid, HD_PROC_STOP);
	return true;
}

static bool do_slow(struct hd_faults *f, const struct hd_fault *fault)
{
	bool coordinator;

	return begin(f, fault, victim(f, fault->target, fault->pick, &coordinator));
}

/* One side of a link between two workers, or of a worker and the coordinator. */
static bool do_net(struct hd_faults *f, const struct hd_fault *fault)
{
	static const char *const what[] =
		{ [HD_HOW_CUT] = "wire.read:err=ECONNRESET#%u;wire.connect:err=ECONNREFUSED#%u",
		[HD_HOW_DROP] =
		"wire.read:err=EAGAIN#%u;wire.connect:err=ETIMEDOUT#%u",
		[HD_HOW_DELAY] = "wire.read:delay=5#%u;wire.write:delay=5#%u" };
	const struct hd_status *live = &f->harness->live;
	char line[160];

	const uint32_t n = nprocesses(live);
	if (!n)
		return false;
	const struct hd_status_worker *w = process(live, fault->pick % n), *o = process(live,
		fault->other % n);
	uint32_t key = o == w ? HD_COORDINATOR_LINK : (uint32_t)o->id;
	if (ordered(f) == w->pid || !begin(f, fault, w->pid))
		return false;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(line, sizeof line, what[fault->how], key, key);
#pragma GCC diagnostic pop
	return order(f, w->pid, line);
}

static bool do_disk(struct hd_faults *f, const struct hd_fault *fault)
{
	static const char *const what[HD_HOWS] = { [HD_HOW_FULL] =
		"ckpt.write.before:err=ENOSPC;store.before:err=ENOSPC;metrics.write:err=ENOSPC",
		[HD_HOW_ERROR] = "ckpt.fsync:err=EIO;store.before:err=EIO;events.write:err=EIO",
		[HD_HOW_SLOW] =
		"ckpt.write.before:delay=40;ckpt.rename.before:delay=200;store.before:delay=100" };
	bool coordinator;

	int64_t pid = victim(f, fault->target, fault->pick, &coordinator);
	return pid != ordered(f) && begin(f, fault, pid) && order(f, pid, what[fault->how]);
}

static bool do_scale(struct hd_faults *f, const struct hd_fault *fault)
{
	char ask[64];
	bool taken = false;

	/* a pipeline needs some: a number that is too small is refused */
	for (uint32_t n = fault->by; !taken && n <= fault->by + HD_SCALE_TRIES; n++) {
		snprintf(ask, sizeof ask, "{\"do\":\"scale\",\"workers\":%u}", n);
		taken = !hd_harness_ask(f->harness, ask);
	}
	return taken;
}

bool hd_fault_do(struct hd_faults *f, const struct hd_fault *fault)
{
	static bool (*const act[HD_FAULTS])(struct hd_faults *f, const struct hd_fault *fault) = {
		[HD_FAULT_KILL] = do_kill, [HD_FAULT_POINT] = do_point, [HD_FAULT_PAUSE] = do_pause,
			[HD_FAULT_SLOW] = do_slow, [HD_FAULT_NET] = do_net,
		[HD_FAULT_DISK] = do_disk, [HD_FAULT_SCALE] = do_scale,
	};

	if (!act[fault->kind](f, fault))
		return false;
	/* those count when a process died */
	if (fault->kind != HD_FAULT_KILL && fault->kind != HD_FAULT_POINT)
		f->done[fault->kind]++;
	return true;
}

static void over(struct hd_faults *f, struct hd_fault_open *o)
{
	if (o->stopped)
		(void)!hd_pid_signal((int)o->pid, HD_PROC_CONT);      /* it may have been killed meanwhile */
	if (hd_fault_orders(o->kind))
		withdraw(f, o->pid);
	*o = (struct hd_fault_open){ .pid = 0 };
}

/* A slow one is stopped for (by - 1) / by of each HD_FAULT_SLOW_MS. */
static void turn_one(struct hd_faults *f, struct hd_fault_open *o, int64_t now)
{
	if (now >= o->until_ns) {
		over(f, o);
	} else if (o->kind == HD_FAULT_SLOW && now >= o->turn_ns) {
		const int64_t go_ns = HD_FAULT_SLOW_MS * HD_NS_PER_MS / o->by;
		o->stopped = !o->stopped;
		(void)!hd_pid_signal((int)o->pid, o->stopped ? HD_PROC_STOP : HD_PROC_CONT);
		o->turn_ns = now + (o->stopped ? HD_FAULT_SLOW_MS * HD_NS_PER_MS - go_ns : go_ns);
	}
}

int64_t hd_fault_turn(struct hd_faults *f)
{
	int64_t now = hd_clock_now_ns(clock_of(f)), next = INT64_MAX;

	if (f->harness->heard)
		f->kills_since_reply = 0;
	turn_orders(f, now);
	for (uint32_t i = 0; i < HD_FAULTS_OPEN; i++) {
		struct hd_fault_open *o = &f->open[i];
		if (o->pid)
			turn_one(f, o, now);
		int64_t at = o->kind == HD_FAULT_SLOW ? o->turn_ns : o->until_ns;
		if (o->pid && at < next)
			next = at;
	}
	return next;
}

bool hd_fault_lasts(const struct hd_faults *f)
{
	bool some = false;

	for (uint32_t p = 0; p < HD_FP_COUNT; p++)
		some |= f->order[p].placed;
	for (uint32_t i = 0; i < HD_FAULTS_OPEN; i++)
		some |= f->open[i].pid != 0;
	return some;
}

void hd_fault_end(struct hd_faults *f)
{
	if (!f->harness)
		return;
	look_for_hits(f);
	for (uint32_t i = 0; i < HD_FAULTS_OPEN; i++)
		if (f->open[i].pid)
			over(f, &f->open[i]);
	if (ordered(f))
		withdraw(f, ordered(f));
	for (uint32_t p = 0; p < HD_FP_COUNT; p++)
		f->order[p].placed = false;
	if (f->folder[0] && hd_failpoint_built())
		write_wide(f);
}

void hd_fault_take_orders(const char *dir)
{
	char folder[HD_PATH_CAP];

	if ((size_t)snprintf(folder, sizeof folder, "%s/" HD_FAULT_FOLDER, dir) >= sizeof folder)
		return;
	hd_failpoint_watch(folder);
	hd_failpoint_look();
}
