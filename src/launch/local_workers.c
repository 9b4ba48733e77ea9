#include "launch/local_workers.h"

#include <stdio.h>

enum { HD_LOCAL_FIRST_NS = 100000000, HD_LOCAL_UNSTARTED = -1 };
#define HD_LOCAL_LONGEST_NS INT64_C(5000000000)

void hd_local_init(struct hd_local_workers *local, const struct hd_local_spec *spec) { *local =
	(struct hd_local_workers){ .spec = *spec }; }

static struct hd_child *free_place(struct hd_local_workers *local)
{
	for (size_t i = 0; i < HD_LOCAL_CHILDREN; i++)
		if (!local->child[i].proc.host)
			return &local->child[i];
	return NULL;
}

/* The k-th in a row: what follows waits. */
static void bad_start(struct hd_local_workers *local)
{
	int64_t wait = HD_LOCAL_FIRST_NS;

	local->bad_starts++;
	for (uint32_t k = 1; k < local->bad_starts && wait < HD_LOCAL_LONGEST_NS; k++)
		wait *= 2;
	local->ready_ns = hd_clock_now_ns(local->spec.clock) + (wait < HD_LOCAL_LONGEST_NS ? wait :
		HD_LOCAL_LONGEST_NS);
}

static bool count_alike(struct hd_local_workers *local, int code)
{
	local->nalike = code == local->alike_code ? local->nalike + 1 : 1;
	local->alike_code = code;
	return local->nalike >= HD_LOCAL_ALIKE;
}

/* SIGTERM and SIGKILL by us are no failure. */
static bool is_error(int code) { return code && code != hd_err_exit(HD_E_PREEMPTED) &&
	code != hd_err_exit(HD_E_INTERRUPT); }

/* What ran for a while and then ended is no bad start, and forgives those before. */
bool hd_local_judge(struct hd_local_workers *local, const struct hd_child_end *end, bool did_something)
{
	bool failed = !did_something && is_error(end->code);

	if (failed || end->lived_ns < HD_LOCAL_SHORT_NS)
		bad_start(local);
	else
		local->bad_starts = 0;
	if (did_something)
		local->nalike = 0;
	if (!failed)
		return false;
	return count_alike(local, end->code);
}

uint32_t hd_local_fell(struct hd_local_workers *local, const struct hd_child_end *end, uint64_t step)
{
	if (!is_error(end->code))
		return 0;
	if (step != local->same.step)
		local->same.n = local->same.next = 0;
	local->same.step = step;
	if (end->number < local->same.next)
		return 0;
	local->same.next = local->next;
	return ++local->same.n;
}

void hd_local_passed(struct hd_local_workers *local, uint64_t step)
{
	if (step >= local->same.step)
		local->same.n = local->same.next = 0;
}

static void take_zone(const char *argv[HD_LOCAL_ARGS + 3], const struct hd_local_workers *local)
{
	uint32_t n = 0;

	for (; local->spec.argv[n] && n < HD_LOCAL_ARGS; n++)
		argv[n] = local->spec.argv[n];
	if (local->zone) {
		argv[n++] = "--zone";
		argv[n++] = local->zone;
	}
	argv[n] = NULL;
}

enum hd_err hd_local_start(struct hd_local_workers *local, uint32_t *number, struct hd_diag *diag)
{
	struct hd_child *child = free_place(local);
	char path[HD_PATH_CAP];
	struct hd_file log = { 0 };

	if (!child)
		return hd_fail(diag, HD_E_REFUSED, "a run starts at most %d workers on its own machine",
			HD_LOCAL_CHILDREN);
	int64_t now = hd_clock_now_ns(local->spec.clock);
	if (now < local->ready_ns)
		return HD_E_AGAIN;
	*child = (struct hd_child){ .number = local->next++, .began_ns = now, .mark = local->mark,
		.zone = local->zone };
	snprintf(path, sizeof path, "%s/log", local->spec.dir);
	enum hd_err err = hd_fs_mkdirs(local->spec.fs, path, diag);
	snprintf(path, sizeof path, "%s/log/hand-%u.log", local->spec.dir, child->number);
	if (!err)
		err = hd_file_open(local->spec.fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND,
			&log, diag);
	const char *argv[HD_LOCAL_ARGS + 3];
	take_zone(argv, local);
	struct hd_spawn how = { .argv = argv, .in = -1, .out = log.id, .err = log.id };
	if (!err)
		err = hd_proc_spawn(local->spec.host, &how, &child->proc, diag);
	if (log.fs)
		err = hd_file_close(&log, err ? NULL : diag) && !err ? HD_E_IO : err;
	if (err) {
		child->proc = (struct hd_proc){ 0 };
		bad_start(local);
		(void)count_alike(local, HD_LOCAL_UNSTARTED);
		return err;
	}
	local->n++;
	if (number)
		*number = child->number;
	return HD_OK;
}

bool hd_local_ended(struct hd_local_workers *local, struct hd_child_end *end)
{
	for (size_t i = 0; i < HD_LOCAL_CHILDREN; i++) {
		struct hd_child *child = &local->child[i];
		*end = (struct hd_child_end){ .number = child->number, .pid = child->proc.pid,
			.mark = child->mark };
		if (!child->proc.host || hd_proc_wait(&child->proc, 0, &end->code, NULL) != HD_OK)
			continue;
		end->lived_ns = hd_clock_now_ns(local->spec.clock) - child->began_ns;
		child->proc = (struct hd_proc){ 0 };
		local->n--;
		return true;
	}
	return false;
}

struct hd_child *hd_local_find(struct hd_local_workers *local, int pid)
{
	for (size_t i = 0; i < HD_LOCAL_CHILDREN; i++)
		if (local->child[i].proc.host && local->child[i].proc.pid == pid)
			return &local->child[i];
	return NULL;
}

void hd_local_finish(struct hd_local_workers *local, int64_t grace_ns)
{
	int64_t until = local->n ? hd_clock_now_ns(local->spec.clock) + grace_ns : 0;
	int code;

	for (size_t i = 0; i < HD_LOCAL_CHILDREN; i++)
		if (local->child[i].proc.host && hd_proc_signal(&local->child[i].proc, HD_PROC_TERM, NULL))
			continue;         /* it has just ended */
	for (size_t i = 0; i < HD_LOCAL_CHILDREN; i++) {
		struct hd_child *child = &local->child[i];
		int64_t left = child->proc.host ? until - hd_clock_now_ns(local->spec.clock) : 0;
		if (child->proc.host && hd_proc_wait(&child->proc, left > 0 ? left : 0, &code, NULL) == HD_OK)
			child->proc = (struct hd_proc){ 0 };
		hd_proc_finish(&child->proc);
		*child = (struct hd_child){ 0 };
	}
	local->n = 0;
}
