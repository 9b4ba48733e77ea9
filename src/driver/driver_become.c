#include <stdio.h>
#include <string.h>

#include "driver/driver_int.h"

/* Another program for a run that goes on: the coordinator's process becomes it, workers are replaced by its
 * workers one at a time. */

enum hd_err driver_answer_become(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const char *program = "";
	struct hd_co_status status = { 0 };
	enum hd_err err = hd_json_get_text(ask, "program", &program, diag);

	(void)w;
	if (!err && (*program != '/' || strlen(program) >= sizeof c->end.become))
		err = hd_fail(diag, HD_E_INVAL, "the program is an absolute path of less than %zu bytes",
			sizeof c->end.become);
	if (!err && c->spec->launcher)
		err = hd_fail(diag, HD_E_INVAL,
			"a launcher starts the workers of this run, with the program that it has: `heddle "
			"stop`, then `heddle resume` with the new one");
	if (!err)
		err = hd_proc_runs(program, diag);
	if (err)
		return err;
	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	if (!c->machine || status.halting)
		return hd_fail(diag, HD_E_AGAIN, "the run %s: ask again",
			c->machine ? "stops" : "has not begun");
	snprintf(c->end.become, sizeof c->end.become, "%s", program);
	driver_note(c, "upgrade", HD_NOBODY, program);
	c->over = true;
	return HD_OK;
}

enum hd_err driver_answer_replace(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	int64_t id = 0;
	enum hd_err err = hd_json_get_i64(ask, "worker", 0, INT32_MAX, &id, diag);
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;

	(void)w;
	if (!err && !c->spec->worker_argv)
		err = hd_fail(diag, HD_E_INVAL,
			"this coordinator starts no workers, so none would come in the place of worker %lld",
			(long long)id);
	for (uint32_t i = 0; i < n && !err; i++)
		if (worker[i].worker == (uint32_t)id && worker[i].state == HD_W_MEMBER &&
			!hd_is_remote(worker[i].worker)) {
			driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_REPLACE,
				.worker = (uint32_t)id, .ok = true });
			return HD_OK;
		}
	return err ? err : hd_fail(diag, HD_E_INVAL, "no worker %lld of this machine takes part",
		(long long)id);
}

void driver_inherit(struct driver *c) { c->ninherited = hd_proc_children(c->inherited, HD_LOCAL_CHILDREN); }

void driver_reap_inherited(struct driver *c)
{
	for (uint32_t i = 0; i < c->ninherited;)
		if (hd_pid_reap(c->inherited[i])) {
			c->inherited[i] = c->inherited[--c->ninherited];
			c->sweep = true;
		} else {
			i++;
		}
}
