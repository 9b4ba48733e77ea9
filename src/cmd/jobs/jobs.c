/* heddle submit, jobs, explain, cancel, hold, release, prio: orders and questions to a scheduler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "sys/account.h"
#include "sys/crypto.h"
#include "sys/process.h"
#include "cmd/json_line.h"
#include "cmd/session.h"
#include "cmd/jobs/scheduler.h"
#include "cmd/jobs/terms.h"
#include "cmd/sched/input.h"

/* ---- submit ---- */

enum { HD_TYPES_NAMED = 64, HD_KEY_BYTES = 16 };

struct order {
	struct hd_job job;
	const char *bytes;
	size_t len;
	char folder[HD_PATH_CAP], key[2 * HD_KEY_BYTES + 1];
	double priority, deadline_s;              /* 0: not said */
	struct hd_order_terms terms;
	int64_t scale;                            /* 0: not said */
	uint32_t nrates;
	struct { const char *type; double steps_s; } rate[HD_TYPES_NAMED];
};

static enum hd_err put_rate(struct hd_cmd *cmd, void *to, char *key, char *value)
{
	struct order *o = to;
	struct hd_diag why = { "" };

	if (o->nrates == HD_TYPES_NAMED)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--rates names more than %d types", HD_TYPES_NAMED);
	if (!value || hd_num_f64(value, 0, 1e12, &o->rate[o->nrates].steps_s, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--rates %s: steps/s on a type are a number from 0 (never there), not \"%s\"", key,
			value ? value : "");
	o->rate[o->nrates++].type = key;
	return HD_OK;
}

/* One a command: the scheduler takes what comes twice with the same key once. */
static enum hd_err make_key(char *key, struct hd_diag *diag)
{
	uint8_t byte[HD_KEY_BYTES];
	enum hd_err err = hd_random_bytes(byte, sizeof byte, diag);

	for (size_t i = 0; i < sizeof byte && !err; i++)
		snprintf(key + 2 * i, 3, "%02x", byte[i]);
	return err;
}

/* The job as it would be, of an array that of its first task; -s goes along as it was written. */
static enum hd_err check_job(struct hd_cmd *cmd, struct order *o)
{
	const char *set[HD_MAX_SETS];

	memcpy(set, cmd->args.set, sizeof set);
	enum hd_err err = hd_order_first_task(cmd, &o->terms);
	if (!err)
		err = hd_session_job(cmd, cmd->args.pos[0], &o->job, &o->bytes, &o->len);
	if (!err)
		err = hd_session_check_model(cmd, &o->job);
	memcpy(cmd->args.set, set, sizeof set);
	return err;
}

static enum hd_err read_order(struct hd_cmd *cmd, struct order *o)
{
	const struct hd_args *a = &cmd->args;
	struct hd_diag why = { "" };
	uint64_t ms = 0;
	double scale = 0;

	if (a->has[HD_OPT_PRIORITY] && hd_num_f64(a->text[HD_OPT_PRIORITY], 1e-6, 1e6, &o->priority, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--priority %s: a weight from 1e-6 to 1e6",
			a->text[HD_OPT_PRIORITY]);
	if (a->has[HD_OPT_DEADLINE] && (hd_num_duration(a->text[HD_OPT_DEADLINE], UINT64_C(1000000000000),
		&ms, &why) || ms == 0))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--deadline %s: a time from now, as 90s, 45min, 12h or 3d", a->text[HD_OPT_DEADLINE]);
	if (a->has[HD_OPT_SCALE] && (hd_num_f64(a->text[HD_OPT_SCALE], 1, 1 << 24, &scale, &why) ||
		scale != (double)(int64_t)scale))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--scale %s: a number of devices from 1",
			a->text[HD_OPT_SCALE]);
	o->deadline_s = (double)ms / 1e3;
	o->scale = (int64_t)scale;
	enum hd_err err = a->has[HD_OPT_RATES] ? hd_sched_each(cmd, HD_OPT_RATES, ":=", put_rate, o) : HD_OK;
	if (!err)
		err = hd_order_terms_read(cmd, &o->terms);
	if (!err)
		err = check_job(cmd, o);
	if (!err)
		err = make_key(o->key, &cmd->diag);
	return err ? err : hd_proc_folder(o->folder, sizeof o->folder, &cmd->diag);
}

/* Variables of the environment (HEDDLE_...) hold here and go along as what they set; -s goes after them. */
static enum hd_err put_sets(struct hd_json_writer *w, struct hd_cmd *cmd)
{
	struct hd_job_sets sets;
	struct hd_text text;
	enum hd_err err = hd_job_sets_init(&sets, 0, &cmd->arena, &cmd->diag);

	if (!err)
		err = hd_session_environment(cmd, &sets);
	if (err || (!sets.n && !cmd->args.nsets))
		return err;
	hd_json_open_array(w, "set");
	for (uint32_t i = 0; i < sets.n; i++) {
		hd_text_init(&text, &cmd->arena);
		hd_text_addf(&text, "%s=%s", sets.set[i].key, sets.set[i].text);
		hd_json_put_text(w, NULL, text.full ? "" : text.at);
	}
	for (uint32_t i = 0; i < cmd->args.nsets; i++)
		hd_json_put_text(w, NULL, cmd->args.set[i]);
	hd_json_close(w);
	return HD_OK;
}

static enum hd_err write_order(struct hd_cmd *cmd, const struct order *o, struct hd_text *text)
{
	struct hd_account self;
	const char *user = hd_account_of(hd_account_self(), 0, &self) ? getenv("USER") : self.name;
	struct hd_json_writer w;

	hd_text_init(text, &cmd->arena);
	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_bytes(&w, "job", o->bytes, o->len);
	hd_json_put_text(&w, "folder", o->folder);
	hd_json_put_text(&w, "key", o->key);
	enum hd_err err = put_sets(&w, cmd);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JOB_NAME])
		hd_json_put_text(&w, "name", cmd->args.text[HD_OPT_JOB_NAME]);
	if (o->priority > 0)
		hd_json_put_f64(&w, "priority", o->priority);
	if (o->deadline_s > 0)
		hd_json_put_f64(&w, "deadline_s", o->deadline_s);
	if (o->scale)
		hd_json_put_i64(&w, "scale", o->scale);
	hd_order_terms_put(&o->terms, &w);
	if (o->nrates) {
		hd_json_open_object(&w, "rates");
		for (uint32_t i = 0; i < o->nrates; i++)
			hd_json_put_f64(&w, o->rate[i].type, o->rate[i].steps_s);
		hd_json_close(&w);
	}
	if (user && *user && strlen(user) <= 64)
		hd_json_put_text(&w, "user", user);
	hd_json_close(&w);
	return text->full ? hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job file") : HD_OK;
}

/* Without an answer it is not known whether the job was taken: once more. */
static enum hd_err send_order(struct hd_cmd *cmd, const char *text, const struct hd_json **answer)
{
	enum hd_err err = hd_scheduler_ask(cmd, "POST", "/v1/jobs", text, answer);
	struct hd_diag first = cmd->diag;

	if (err != HD_E_PEERLOST)
		return err;
	cmd->diag.text[0] = 0;
	if (!hd_scheduler_ask(cmd, "POST", "/v1/jobs", text, answer))
		return HD_OK;
	cmd->diag.text[0] = 0;
	return hd_fail(&cmd->diag, err, "%.300s; `heddle jobs` says whether it took the job", first.text);
}

static enum hd_err verb_submit(struct hd_cmd *cmd)
{
	struct order *o = hd_arena_take(&cmd->arena, 1, sizeof *o);
	const char *dir = hd_scheduler_dir(cmd);
	struct hd_answer_submitted job = { 0 };
	const struct hd_json *answer;
	struct hd_text text;
	enum hd_err err = o ? read_order(cmd, o) : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");

	if (!err)
		err = write_order(cmd, o, &text);
	if (!err && cmd->args.has[HD_OPT_PRINT]) {
		printf("%s\n", text.at);
		return HD_OK;
	}
	if (!err)
		err = send_order(cmd, text.at, &answer);
	if (!err && cmd->args.has[HD_OPT_JSON])
		return hd_scheduler_print(cmd, answer);
	if (!err)
		err = hd_fields_read(&hd_answer_submitted_fields, 0, answer, &job, &cmd->diag);
	if (err)
		return err;
	long long id = job.id;
	printf("%lld\n", id);
	if (job.tasks)
		fprintf(stderr, ">> jobs %lld to %lld are the tasks of its array\n", id, id +
			(long long)job.tasks - 1);
	if (*job.why)
		fprintf(stderr, "heddle: job %lld waits as long as it is so. %s\n", id, job.why);
	if (!cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr,
			">> job %lld (%s) is %s; its run is %s\n>> `heddle explain %lld --dir %s` says why "
			"it waits, `heddle status --dir %s` "
			"what goes on\n", id, job.name, job.state, job.run, id, dir, dir);
	return HD_OK;
}

const struct hd_verb hd_verb_submit = {
	.name = "submit", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "hand a job to a scheduler (`heddle serve --dir DIR`)",
	.more =
		"The job file, -s and the model are checked here first; relative paths begin in the "
		"current folder. The job's number goes to stdout.\n"
		"--scale: devices it wants at once. --rates: its steps/s on that many devices of a "
		"type, where they are known; others are measured. --time: of running; waiting does not "
		"count.\n"
		"--after 7,8:any: job 7 must be done, job 8 be over; the first task of an array stands "
		"for all of them. A job whose other job ended otherwise is cancelled.",
	.opts = HD_OPTS(HD_OPT_PRIORITY, HD_OPT_DEADLINE, HD_OPT_SCALE, HD_OPT_RATES, HD_OPT_JOB_NAME,
		HD_OPT_SET, HD_OPT_HELD, HD_OPT_AFTER, HD_OPT_ARRAY, HD_OPT_TIME, HD_OPT_EXPECT,
		HD_OPT_OF_PARTITION, HD_OPT_OF_ACCOUNT, HD_OPT_PRINT),
	.run = verb_submit, .test = "program_jobs.sh",
};

/* ---- jobs ---- */

/* The tasks of an array, which stand together, as one line: the state of the first that is not over, with
 * sums. n 0: none. */
struct array_line { struct hd_answer_job job; uint32_t n, waiting, working, done, other; };

static void end_group(struct hd_cmd *cmd, struct array_line *g)
{
	char why[120];

	if (!g->n)
		return;
	snprintf(why, sizeof why, "array of %u tasks: %u wait, %u have devices, %u are done, %u ended "
		"otherwise",
		g->n, g->waiting, g->working, g->done, g->other);
	g->job.why = why;
	hd_scheduler_line(cmd, &hd_answer_job_fields, &g->job);
	*g = (struct array_line){ 0 };
}

/* Texts of a page do not outlive it: those of the first task are kept apart. */
static void add_task(struct hd_cmd *cmd, struct array_line *g, const struct hd_answer_job *task)
{
	bool over = task->ended_s >= 0, done = !strcmp(task->state, "done");

	if (g->n && g->job.array != task->array)
		end_group(cmd, g);
	if (!g->n++) {
		g->job = *task;
		g->job.step = g->job.steps = g->job.scale = g->job.devices_n = 0;
	}
	if (!over && (g->job.ended_s >= 0 || task->devices_n)) {
		g->job.state = task->state;
		g->job.type = task->type;
		g->job.ended_s = -1;
	}
	g->job.step += task->step;
	g->job.steps += task->steps;
	g->job.scale += over ? 0 : task->scale;
	g->job.devices_n += task->devices_n;
	g->waiting += !over && !task->devices_n;
	g->working += !over && task->devices_n;
	g->done += over && done;
	g->other += over && !done;
}

static enum hd_err print_page(struct hd_cmd *cmd, const struct hd_json *list, int64_t *last)
{
	struct hd_answer_job job = { 0 };
	struct array_line group = { 0 };
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < hd_json_count(list) && !err; i++) {
		job = (struct hd_answer_job){ 0 };        /* a scheduler before this one knows no arrays */
		err = hd_fields_read(&hd_answer_job_fields, 0, hd_json_item(list, i), &job, &cmd->diag);
		if (err)
			break;
		if (job.id <= *last)
			return hd_fail(&cmd->diag, HD_E_PROTOCOL,
				"the scheduler lists job %lld after job %lld", (long long)job.id,
				(long long)*last);
		*last = job.id;
		if (cmd->args.has[HD_OPT_JSON])
			err = hd_scheduler_print(cmd, hd_json_item(list, i));
		else if (job.array && !cmd->args.has[HD_OPT_TASKS])
			add_task(cmd, &group, &job);
		else {
			end_group(cmd, &group);
			hd_scheduler_line(cmd, &hd_answer_job_fields, &job);
		}
	}
	end_group(cmd, &group);
	return err;
}

static enum hd_err verb_jobs(struct hd_cmd *cmd)
{
	const char *state = hd_args_text(&cmd->args, HD_OPT_JOB_STATE, NULL);
	char target[120];
	int64_t last = 0;
	bool more = true;
	enum hd_err err = HD_OK;

	for (bool first = true; more && !err; first = false) {
		const struct hd_json *answer, *list = NULL;
		snprintf(target, sizeof target, "/v1/jobs?limit=1000&after=%lld%s%s", (long long)last,
			state ? "&state=" : "", state ? state : "");
		err = hd_scheduler_ask(cmd, "GET", target, NULL, &answer);
		if (!err)
			err = hd_json_get(answer, "jobs", HD_JSON_ARRAY, &list, &cmd->diag);
		if (!err)
			err = hd_json_get_bool(answer, "more", &more, &cmd->diag);
		if (err)
			break;
		if (first && !cmd->args.has[HD_OPT_JSON])
			hd_scheduler_head(cmd, &hd_answer_job_fields);
		err = print_page(cmd, list, &last);
		more = more && hd_json_count(list);
		hd_arena_reset(&cmd->arena);
	}
	return err;
}

const struct hd_verb hd_verb_jobs = {
	.name = "jobs", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "the jobs of a scheduler, oldest first",
	.more =
		"An array is one line, with the number of its first task and sums over all of them; with "
		"--tasks each has a line. --json: an object a line, for each task.",
	.opts = HD_OPTS(HD_OPT_JOB_STATE, HD_OPT_TASKS),
	.run = verb_jobs, .test = "program_jobs.sh",
};

/* ---- explain ---- */

static enum hd_err print_types(struct hd_cmd *cmd, const struct hd_json *types)
{
	struct hd_answer_job_type type = { 0 };
	enum hd_err err = HD_OK;

	if (hd_json_count(types))
		hd_scheduler_head(cmd, &hd_answer_job_type_fields);
	for (size_t i = 0; i < hd_json_count(types) && !err; i++) {
		err = hd_fields_read(&hd_answer_job_type_fields, 0, hd_json_item(types, i), &type,
			&cmd->diag);
		if (!err)
			hd_scheduler_line(cmd, &hd_answer_job_type_fields, &type);
	}
	return err;
}

static enum hd_err print_why(struct hd_cmd *cmd, const struct hd_json *a)
{
	const struct hd_json *more = NULL, *types = NULL;
	struct hd_answer_why why = { 0 };
	const char *line;
	struct hd_text text;
	enum hd_err err = hd_fields_read(&hd_answer_why_fields, 0, a, &why, &cmd->diag);

	if (!err)
		err = hd_json_get(a, "more", HD_JSON_ARRAY, &more, &cmd->diag);
	if (!err)
		err = hd_json_get(a, "types", HD_JSON_ARRAY, &types, &cmd->diag);
	if (err)
		return err;
	hd_text_init(&text, &cmd->arena);
	hd_fields_say(&hd_answer_why_fields, &why, "job {id} ({name}) is {state}: {code}\n{text}\n", &text);
	fputs(text.at, stdout);
	for (size_t i = 0; i < hd_json_count(more) && !err; i++) {
		err = hd_json_as_text(hd_json_item(more, i), &line, &cmd->diag);
		if (!err)
			printf("%s\n", line);
	}
	return err ? err : print_types(cmd, types);
}

static enum hd_err verb_explain(struct hd_cmd *cmd)
{
	const struct hd_json *answer;
	char target[200];
	enum hd_err err = hd_scheduler_target(cmd, cmd->args.pos[0], "/why", target);

	if (!err)
		err = hd_scheduler_ask(cmd, "GET", target, NULL, &answer);
	if (err)
		return err;
	return cmd->args.has[HD_OPT_JSON] ? hd_scheduler_print(cmd, answer) : print_why(cmd, answer);
}

const struct hd_verb hd_verb_explain = {
	.name = "explain", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "why a job of a scheduler waits, or runs where it runs",
	.more =
		"JOB is its number or name (the youngest of that name). One leading reason with its "
		"numbers, what would help, and the job against each type of device: its speed there, "
		"its share of the time, what it received of what it was due.",
	.opts = HD_OPTS(),
	.run = verb_explain, .test = "program_jobs.sh",
};

/* ---- cancel, prio ---- */

/* A job, or all tasks of its array, and what became of it. `said`: what was done, of tasks. */
static enum hd_err change(struct hd_cmd *cmd, const char *rest, const char *said)
{
	bool tasks = cmd->args.has[HD_OPT_TASKS];
	struct hd_answer_state is = { 0 };
	const struct hd_json *answer;
	char target[200];
	enum hd_err err = hd_scheduler_target(cmd, cmd->args.pos[0], rest, target);

	if (!err)
		err = hd_scheduler_ask(cmd, "POST", target, tasks ? "{\"tasks\":true}" : NULL, &answer);
	if (!err && cmd->args.has[HD_OPT_JSON])
		return hd_scheduler_print(cmd, answer);
	if (!err)
		err = hd_fields_read(&hd_answer_state_fields, 0, answer, &is, &cmd->diag);
	if (err || cmd->args.has[HD_OPT_QUIET])
		return err;
	if (tasks)
		printf("%lld tasks are %s\n", (long long)is.tasks, said);
	else
		printf("job %lld is %s\n", (long long)is.id, is.state);
	return HD_OK;
}

static enum hd_err verb_cancel(struct hd_cmd *cmd) { return change(cmd, "/cancel", "cancelled"); }
static enum hd_err verb_hold(struct hd_cmd *cmd) { return change(cmd, "/hold", "held"); }
static enum hd_err verb_release(struct hd_cmd *cmd) { return change(cmd, "/release", "released"); }

const struct hd_verb hd_verb_cancel = {
	.name = "cancel", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "end a job of a scheduler",
	.more = "A job that runs finishes the step at hand and commits; its run directory stays.",
	.opts = HD_OPTS(HD_OPT_TASKS),
	.run = verb_cancel, .test = "program_jobs.sh",
};

const struct hd_verb hd_verb_hold = {
	.name = "hold", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "keep a job of a scheduler from running",
	.more =
		"A job that runs finishes the step at hand, commits and leaves its devices; nothing is "
		"lost. `heddle release` lets it go on.",
	.opts = HD_OPTS(HD_OPT_TASKS),
	.run = verb_hold, .test = "program_jobs.sh",
};

const struct hd_verb hd_verb_release = {
	.name = "release", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "let a held job of a scheduler go on",
	.more = "It takes its turn among those that wait.",
	.opts = HD_OPTS(HD_OPT_TASKS),
	.run = verb_release, .test = "program_jobs.sh",
};

static enum hd_err verb_prio(struct hd_cmd *cmd)
{
	const struct hd_json *answer;
	char target[200], body[80];
	double priority = 0;
	int64_t id = 0;
	enum hd_err err = hd_scheduler_target(cmd, cmd->args.pos[0], "/priority", target);

	if (!err && hd_num_f64(cmd->args.pos[1], 1e-6, 1e6, &priority, NULL))
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"priority %.60s: a weight from 1e-6 to 1e6 (1 is usual)", cmd->args.pos[1]);
	snprintf(body, sizeof body, "{\"priority\":%.17g}", priority);
	if (!err)
		err = hd_scheduler_ask(cmd, "POST", target, body, &answer);
	if (!err && cmd->args.has[HD_OPT_JSON])
		return hd_scheduler_print(cmd, answer);
	if (!err)
		err = hd_json_get_i64(answer, "id", 0, INT64_MAX, &id, &cmd->diag);
	if (!err)
		err = hd_json_get_f64(answer, "priority", &priority, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		printf("job %lld has priority %.6g\n", (long long)id, priority);
	return err;
}

const struct hd_verb hd_verb_prio = {
	.name = "prio", .args = "JOB P", .npos_min = 2, .npos_max = 2,
	.about = "give a job of a scheduler another priority",
	.more = "It weighs from the next round on: twice as much, twice the share.",
	.opts = HD_OPTS(),
	.run = verb_prio, .test = "program_jobs.sh",
};
