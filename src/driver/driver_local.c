#include "driver/driver_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "driver/standing.h"

/* Local workers: reaped, started, and reported when starts fail alike. */

enum { TAIL = 2048 };

/* A start that failed. The machine counts missing workers; before there is one, this does. */
static void unspawned(struct driver *c)
{
	if (c->machine)
		driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_UNSPAWNED, .n = 1 });
	else if (c->local.n + c->to_start < c->config.target)
		c->to_start++;
}

/* As many are left to start as are missing. */
void driver_resize_start(struct driver *c)
{
	if (c->spec->worker_argv && (c->spec->target || c->asked_for_all))
		c->to_start = c->config.target > c->local.n ? c->config.target - c->local.n : 0;
}

uint32_t driver_under_way(const struct driver *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0, joined = 0;

	for (uint32_t h = 0; h < HD_LOCAL_CHILDREN; h++)
		for (uint32_t i = 0; i < n && c->local.child[h].proc.host; i++)
			if (driver_pid(&w[i]) == c->local.child[h].proc.pid) {
				joined++;
				break;
			}
	return c->local.n - joined + c->to_start;
}

bool driver_has_others(struct driver *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0;
	struct hd_co_status status = { 0 };

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	for (uint32_t i = 0; i < n; i++) {
		bool here = w[i].up && w[i].state != HD_W_LEFT && w[i].state != HD_W_OUT;
		if (here && !hd_local_find(&c->local, driver_pid(&w[i])))
			return true;
	}
	return status.nmembers > 0;
}

void driver_last_line(struct driver *c, const char *name, char line[DRIVER_LINE])
{
	char path[HD_PATH_CAP], buf[TAIL + 1];
	struct hd_file file = { 0 };
	struct hd_stat stat;
	size_t got = 0;

	*line = '\0';
	hd_rundir_path(c->spec->dir, name, path, sizeof path);
	if (hd_fs_stat(c->spec->fs, path, &stat, NULL) || hd_file_open(c->spec->fs, path, HD_OPEN_READ, &file,
		NULL))
		return;
	if (hd_file_pread(&file, buf, TAIL, stat.size_bytes > TAIL ? stat.size_bytes - TAIL : 0, &got, NULL))
		got = 0;
	(void)!hd_file_close(&file, NULL);
	while (got && (buf[got - 1] == '\n' || buf[got - 1] == '\r'))
		got--;
	buf[got] = '\0';
	const char *nl = strrchr(buf, '\n');
	snprintf(line, DRIVER_LINE, "%.*s", DRIVER_LINE - 1, nl ? nl + 1 : buf);
}

static void child_line(struct driver *c, const struct hd_child_end *end, char line[DRIVER_LINE])
{
	char name[48];

	snprintf(name, sizeof name, "log/hand-%u.log", end->number);
	driver_last_line(c, name, line);
}

/* One event for each series. With no other worker left the run ends with their exit code. Not for signals:
 * what kills them may stop. */
static void failed_alike(struct driver *c, const struct hd_child_end *end)
{
	bool by_signal = end->code >= 128;
	struct hd_diag diag = { "" };
	char line[DRIVER_LINE];

	child_line(c, end, line);
	enum hd_err err = hd_fail(&diag, hd_err_of_exit(end->code),
		"%u workers in a row ended with %s %d before they took part; %s/log/hand-%u.log %s%s",
		c->local.nalike, by_signal ? "signal" : "exit code", by_signal ? end->code - 128 : end->code,
		c->spec->dir->path, end->number,
		*line ? "ends with: " : "is empty", line);
	if (c->local.nalike == HD_LOCAL_ALIKE)
		driver_note(c, "failing", HD_NOBODY, diag.text);
	if (!by_signal && !driver_has_others(c))
		driver_fail(c, err, &diag);
}

/* A step that takes all of its workers with it would be begun without end. The state is on the disk. */
static void fell_alike(struct driver *c, const struct hd_child_end *end, uint32_t ntimes)
{
	const bool by_signal = end->code >= 128;
	const unsigned long long step = (unsigned long long)c->end.step;
	struct hd_diag diag = { "" };
	char line[DRIVER_LINE];

	child_line(c, end, line);
	enum hd_err err = hd_fail(&diag, by_signal ? HD_E_WORKERS : hd_err_of_exit(end->code),
		"step %llu: its workers ended in it %u times in a row, the last one with %s %d; "
		"%s/log/hand-%u.log %s%s. Checkpoints are kept. Look for what ends them (memory: dmesg, "
		"workers.memory; a fault: heddle report %s), then: heddle resume %s", step, ntimes,
		by_signal ? "signal" : "exit code", by_signal ? end->code - 128 : end->code,
		c->spec->dir->path, end->number, *line ? "ends with: " : "is empty", line, c->spec->dir->path,
		c->spec->dir->path);
	driver_note(c, "failing", HD_NOBODY, diag.text);
	driver_fail(c, err, &diag);
}

/* A member that ends where all wait for more of them ends in no step. */
static void look_at_step(struct driver *c, const struct hd_child_end *end, uint32_t worker)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	struct hd_co_status status = { 0 };

	hd_coordinator_status(c->machine, &status);
	if (!view || !hd_view_has(view, worker) || status.holding || status.halting)
		return;
	const uint32_t n = hd_local_fell(&c->local, end, c->end.step);
	if (n >= HD_LOCAL_ALIKE)
		fell_alike(c, end, n);
}

static void ended(struct driver *c, const struct hd_child_end *end)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t worker = HD_NOBODY, n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) :
		0;
	bool took_part = false;
	char text[80];

	/* a process that joined again was several: the last one counts */
	for (uint32_t i = 0; i < n; i++)
		if (driver_pid(&w[i]) == end->pid && (worker == HD_NOBODY || w[i].worker > worker)) {
			worker = w[i].worker;
			took_part = w[i].sealed && c->end.commits > end->mark;
		}
	c->sweep = true;
	snprintf(text, sizeof text, "process %d ended with exit code %d", end->pid, end->code);
	driver_note(c, "process_ended", worker, text);
	bool alike = hd_local_judge(&c->local, end, took_part);
	if (worker != HD_NOBODY && !c->over)
		look_at_step(c, end, worker);
	if (worker != HD_NOBODY)
		driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = worker,
			.why = HD_EXITED });
	else
		unspawned(c);
	if (alike && !c->over)
		failed_alike(c, end);
}

/* ---- zones (workers.zones) */

/* Local workers in a zone: those that this coordinator started, and those of the one before. */
static uint32_t in_zone(struct driver *c, const char *zone)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	const uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0;
	uint32_t there = 0;

	for (uint32_t i = 0; i < HD_LOCAL_CHILDREN; i++) {
		const struct hd_child *child = &c->local.child[i];
		there += child->proc.host && child->zone && !strcmp(child->zone, zone);
	}
	for (uint32_t i = 0; i < n; i++)
		there += !hd_is_remote(w[i].worker) && w[i].state != HD_W_FREE && w[i].state != HD_W_OUT &&
			w[i].zone && !strcmp(w[i].zone, zone) && !hd_local_find(&c->local, driver_pid(&w[i]));
	return there;
}

static_assert((int)HD_JOB_ZONE <= (int)HD_MSG_ZONE, "a worker may say its zone");

const char *driver_next_zone(struct driver *c)
{
	const struct hd_job_value *zones = &c->spec->task->job->value[HD_JOB_ZONES];
	uint32_t best = 0, least = UINT32_MAX;

	/* an entry is as far as the workers go that entries of its name before it leave over */
	for (uint32_t i = 0; i < zones->nargs; i++) {
		const char *zone = zones->arg[i].text;
		uint32_t entries = 0, before = 0;
		for (uint32_t k = 0; k < zones->nargs; k++) {
			const bool same = !strcmp(zones->arg[k].text, zone);
			entries += same;
			before += same && k < i;
		}
		const uint32_t there = in_zone(c, zone),
			has = there / entries + (there % entries > before);
		if (has < least) {
			least = has;
			best = i;
		}
	}
	return zones->nargs ? zones->arg[best].text : NULL;
}

/* False: not now. */
static bool start_one(struct driver *c)
{
	struct hd_diag diag = { "" };

	c->local.mark = c->end.commits;
	c->local.zone = driver_next_zone(c);
	enum hd_err err = hd_local_start(&c->local, NULL, &diag);
	if (err == HD_E_AGAIN)
		return false;
	c->to_start--;
	if (!err)
		return true;
	if (c->local.nalike == 1 || c->local.nalike == HD_LOCAL_ALIKE)
		driver_note(c, "unspawned", HD_NOBODY, diag.text);
	unspawned(c);
	if (c->local.nalike >= HD_LOCAL_ALIKE && !driver_has_others(c))
		driver_fail(c, err, &diag);
	return true;
}

/* Presumed workers that did not connect in time: the machine counts them as started, so tell it that they
 * failed. */
static void look_at_presumed(struct driver *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = 0, came = 0;

	if (!c->presumed_ns || hd_clock_now_ns(c->spec->clock) < c->presumed_ns)
		return;
	c->presumed_ns = 0;
	n = hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS);
	for (uint32_t i = 0; i < n; i++)
		came += w[i].state != HD_W_FREE && !hd_is_remote(w[i].worker) &&
			!hd_local_find(&c->local, driver_pid(&w[i]));
	/* the first of them had come before they were counted */
	n = c->presumed + 1 > came ? c->presumed + 1 - came : 0;
	if (n)
		driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_UNSPAWNED, .n = n });
}

void driver_sweep(struct driver *c)
{
	uint32_t living = 0;

	c->sweep = false;
	/* what stays lies about until the next time */
	(void)!hd_posts_look(c->spec->fs, c->spec->dir->path, true, &living, NULL);
}

void driver_look_at_local(struct driver *c)
{
	struct hd_child_end end;

	look_at_presumed(c);
	if (c->sweep)
		driver_sweep(c);
	while (hd_local_ended(&c->local, &end))
		ended(c, &end);
	bool may = driver_may_start(c);
	while (may && c->to_start && !c->over && start_one(c))
		continue;
}
