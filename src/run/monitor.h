/* monitor.h -- what others watch a run by, beside its logs: TensorBoard's file, the answerer of Prometheus.
 *
 * The folder of a run (rundir.h) has one while a process holds it, and gives it what it gives to its logs.
 *
 * 1. It decides nothing and holds nothing up: what fails here is said once and ends here; the run goes on.
 *
 * Ownership: open/close; takes NULL. Threads: the run's. */
#ifndef HD_RUN_MONITOR_H
#define HD_RUN_MONITOR_H

#include "sys/clock.h"
#include "sys/file.h"
#include "job/job.h"
#include "engine/worker.h"

struct hd_step_times;
struct hd_monitor;

struct hd_monitor_spec {
	struct hd_fs *fs;                 /* borrowed, as is the clock */
	struct hd_clock *clock;
	const struct hd_job *job;
	const char *folder;
	uint64_t step;                    /* at which the run goes on */
	/* what is to be said, as an event of a kind: where it listens, or why it does not */
	void (*say)(void *user, const char *kind, const char *text);
	void *user;
};

/* NULL in *monitor: the job asks for none. */
void hd_monitor_open(struct hd_monitor **monitor, const struct hd_monitor_spec *spec);
/* Of a step that has a line of metrics.ndjson. */
void hd_monitor_line(struct hd_monitor *monitor, const struct hd_step_record *record,
	const struct hd_step_times *times);
/* Of each step. */
void hd_monitor_step(struct hd_monitor *monitor, const struct hd_step_record *record,
	const struct hd_step_times *times, uint32_t plan, uint64_t lines_lost);
/* Of each event, with its body as hd_rundir_event() takes it. Evaluations reach both from here, whatever
 * process has made them. */
void hd_monitor_event(struct hd_monitor *monitor, const char *kind, uint64_t step, const char *body);
void hd_monitor_close(struct hd_monitor *monitor);

#endif
