/* session.h -- what the verbs that touch a job share: the job file with its
 * overrides, the devices asked for, and the lines a user sees while it runs.
 *
 * Precedence: job/sets.h. The job of a scheduler's run is taken without the variables: those that held where
 * it was submitted are in it. */
#ifndef HD_CMD_SESSION_H
#define HD_CMD_SESSION_H

#include "job/sets.h"
#include "run/devices.h"
#include "run/job_files.h"
#include "run/kernels.h"
#include "run/run.h"
#include "worker/notice_agent.h"
#include "cmd/verbs.h"

/* Reads and resolves a job file; warnings go to stderr unless --quiet. `bytes`, `len` (may be NULL): the
 * file as given; of the short form of a graph's job the long one, resolved. */
HD_MUST_USE enum hd_err hd_session_job(struct hd_cmd *cmd, const char *path, struct hd_job *job,
	const char **bytes, size_t *len);

/* What the environment sets: HEDDLE_BATCH_GLOBAL=64 and the like. */
HD_MUST_USE enum hd_err hd_session_environment(struct hd_cmd *cmd, struct hd_job_sets *sets);

/* The same of a text that came from elsewhere, `name` in messages; its relative paths are looked for here,
 * then in `folder`. */
HD_MUST_USE enum hd_err hd_session_job_text(struct hd_cmd *cmd, const char *name, const char *text,
	size_t len, const char *folder, struct hd_job *job);

/* What is wrong with the arguments of a model only its graph can tell: it is built, and thrown away. */
HD_MUST_USE enum hd_err hd_session_check_model(struct hd_cmd *cmd, const struct hd_job *job);

/* What to open, by --devices, --threads and the job (run/devices.h). Kernels that the job leaves open are
 * settled in it (run/kernels.h). */
HD_MUST_USE enum hd_err hd_session_devices(struct hd_cmd *cmd, struct hd_job *job,
	struct hd_run_options *options);

/* The resolved job of the run that `path` (a run, its checkpoints, one of them) belongs to; `dir`: the run
 * directory. */
HD_MUST_USE enum hd_err hd_session_job_of(struct hd_cmd *cmd, const char *path, struct hd_job *job,
	char dir[HD_RUN_PATH]);

/* Where a run goes on: its newest whole checkpoint, or that of step `from` unless UINT64_MAX; each one
 * that is refused is a line and an event. A run that died before its first checkpoint goes on at step 0:
 * `info` is of step 0 and names no folder, and a line says so. `dir` is held. HD_E_REFUSED: its disk has no
 * room for the next one. HD_E_INTEGRITY: there are some, none is whole; HD_E_NOTFOUND: none of step `from`,
 * or the folder of checkpoints is gone. */
HD_MUST_USE enum hd_err hd_session_newest(struct hd_cmd *cmd, struct hd_rundir *dir, const struct hd_job *job,
	uint64_t from,
	struct hd_ckpt_info *info);

/* Everything a verb needs to evaluate or predict with a run's newest checkpoint (or a checkpoint folder). */
struct hd_session {
	struct hd_job job;
	struct hd_run *run;
	struct hd_ckpt_info ckpt;
	char dir[HD_RUN_PATH];            /* the run directory */
};
HD_MUST_USE enum hd_err hd_session_open(struct hd_cmd *cmd, const char *run_path, struct hd_session *session);
void hd_session_close(struct hd_session *session);
/* --split, else valid where the data have it, else test */
const char *hd_session_split(struct hd_cmd *cmd, const struct hd_session *session);

/* Lines while a run goes on: one rewritten line on a terminal, else one each 10 s (--verbose: each step). */
struct hd_ui {
	struct hd_cmd *cmd;
	int64_t shown_ns;
	bool line_open;                   /* a rewritten line waits for its end */
	double first_loss, last_loss;
	uint64_t steps;
	FILE *events;                     /* --events: NDJSON */
	/* while hd_session_train() trains */
	struct hd_notice_agent *notices;
	struct hd_run *run;
	struct hd_rundir *dir;
};
void hd_ui_init(struct hd_ui *ui, struct hd_cmd *cmd);
struct hd_run_watch hd_ui_watch(struct hd_ui *ui);
void hd_ui_end(struct hd_ui *ui);                             /* finishes a rewritten line */
/* a line of talk */
__attribute__((format(printf, 2, 3))) void hd_ui_say(struct hd_ui *ui, const char *fmt, ...);

void hd_time_text(double seconds, char text[32]);             /* "1 m 02 s" */

/* What a step was predicted to take, and took: members of the object that ends a run, and a line; with
 * --explain every instruction. NULL: nothing was predicted. */
struct hd_forecast;
struct hd_json_writer;
void hd_session_put_forecast(struct hd_cmd *cmd, struct hd_json_writer *w,
	const struct hd_forecast *forecast);
void hd_session_say_forecast(struct hd_ui *ui, const struct hd_forecast *forecast);

/* The state of the best evaluation that a run has kept (checkpoint.best); false: none. */
bool hd_session_best(struct hd_cmd *cmd, const struct hd_job *job, const char *dir,
	struct hd_ckpt_info *kept);
void hd_session_say_best(struct hd_ui *ui, const struct hd_job *job, const char *dir);
/* What its functions did and cost; members of the object that ends it. Nothing of a run that has none. */
void hd_session_say_functions(struct hd_ui *ui, const char *dir);
void hd_session_put_functions(struct hd_cmd *cmd, struct hd_json_writer *writer, const char *dir);
/* Members of the object that ends a run: `best_step`; of a graph, whose vertices of all sets are at hand,
 * `test_accuracy`: what the best state that was kept gets right of the test set, else the end state. `run`
 * then has that state. */
void hd_session_put_test(struct hd_cmd *cmd, struct hd_json_writer *w, struct hd_run *run, const char *dir);

/* What a run asks between two steps: has a signal asked it to stop? */
enum hd_err hd_session_stop(void *user);
/* ... or a notice that this machine will be taken away? user: the hd_ui that the run is watched by. */
enum hd_err hd_session_stop_run(void *user);

/* Trains `run` with signals and notices obeyed, writes the report, prints digest and paths; for run, resume
 * and demo. */
HD_MUST_USE enum hd_err hd_session_train(struct hd_cmd *cmd, struct hd_ui *ui, struct hd_run *run,
	struct hd_rundir *dir);

#endif
