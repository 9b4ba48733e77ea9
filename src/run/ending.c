#include "run/ending.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* events behind the last beginning may be more: then it goes on, or died */
enum { TAIL = 1 << 16, BODY = 1500, JOB_BYTES = 1 << 20 };

static const char left_at_once[] = "stopped at once, without a checkpoint";

/* ---- written ---- */

/* text NULL: it begins */
struct body { uint64_t steps; enum hd_err err; const char *text; bool reached; };

/* False: the text does not fit. */
static bool write_body(struct hd_text *body, char room[BODY], const struct body *of)
{
	struct hd_json_writer w;

	hd_text_fixed(body, room, BODY);
	hd_json_writer_init(&w, body);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "steps", (int64_t)of->steps);
	if (of->reached)
		hd_json_put_bool(&w, "reached", true);
	if (of->text) {
		hd_json_put_i64(&w, "exit", hd_err_exit(of->err));
		hd_json_put_text(&w, "text", of->text);
	}
	hd_json_close(&w);
	return !body->full;
}

/* Without its braces. */
static const char *body_of(char room[BODY], struct body of)
{
	struct hd_text body;

	if (!write_body(&body, room, &of)) {
		/* a text of nothing but escapes: without it, never without the exit code */
		of.text = hd_err_text(of.err);
		(void)write_body(&body, room, &of);
	}
	assert(!body.full);
	body.at[body.len - 1] = '\0';
	return body.at + 1;
}

void hd_ending_begins(struct hd_rundir *dir, uint64_t step, uint64_t steps)
{
	char room[BODY];

	hd_rundir_event(dir, "job_start", step, body_of(room, (struct body){ .steps = steps }));
}

void hd_ending_ends(struct hd_rundir *dir, uint64_t step, uint64_t steps, enum hd_err err,
	const struct hd_diag *why)
{
	const char *text = !err ? "" : why->text[0] ? why->text : hd_err_text(err);
	char room[BODY];

	hd_rundir_event(dir, "job_end", step, body_of(room, (struct body){ steps, err, text, false }));
}

void hd_ending_reached(struct hd_rundir *dir, uint64_t step, uint64_t steps)
{
	char room[BODY];

	hd_rundir_event(dir, "job_end", step, body_of(room, (struct body){ steps, HD_OK, "", true }));
}

void hd_ending_at_once(struct hd_ending_word *word, const struct hd_rundir *dir, uint64_t step,
	uint64_t steps)
{
	static const enum hd_stop stops[] = { HD_STOP_PREEMPT, HD_STOP_INTERRUPT };
	struct hd_signal_word *next = &word->word[word->next];
	char room[BODY];

	*next = (struct hd_signal_word){ .to = &dir->events.file };
	for (size_t i = 0; i < sizeof stops / sizeof *stops && dir->events.file.fs; i++) {
		enum hd_err err = hd_stop_err(stops[i]);
		char *at = word->line[word->next][stops[i]];
		struct hd_text line;
		hd_text_fixed(&line, at, HD_ENDING_TEXT);
		if (hd_rundir_event_line(dir, &line, "job_end", step,
			body_of(room, (struct body){ steps, err, left_at_once, false })))
			next->line[stops[i]].at = at, next->line[stops[i]].len_bytes = line.len;
	}
	hd_signal_word_set(next);
	word->next = !word->next;
}

/* ---- read ---- */

struct look { struct hd_ending *ending; struct hd_arena arena; };

/* True: this is the line that was looked for. What is missing in it stays as it was. */
static bool take_event(struct look *l, const struct hd_json *line)
{
	const char *kind = "", *text = "";
	int64_t exit = -1;

	if (hd_json_get_text(line, "kind", &kind, NULL) || (strcmp(kind, "job_start") != 0 &&
		strcmp(kind, "job_end") != 0))
		return false;
	l->ending->began = true;
	l->ending->ended = !strcmp(kind, "job_end");
	(void)!hd_json_get_u64(line, "step", INT64_MAX, &l->ending->step, NULL);
	(void)!hd_json_get_u64(line, "steps", INT64_MAX, &l->ending->steps, NULL);
	if (!hd_json_get_i64(line, "exit", 0, UINT8_MAX, &exit, NULL))
		l->ending->exit = (int)exit;
	(void)!hd_json_get_bool(line, "reached", &l->ending->reached, NULL);
	if (!hd_json_get_text(line, "text", &text, NULL))
		snprintf(l->ending->text, sizeof l->ending->text, "%s", text);
	l->ending->at_once = !strcmp(text, left_at_once);
	return true;
}

static bool take_record(struct look *l, const struct hd_json *line)
{
	uint64_t step = 0;

	if (hd_json_get_u64(line, "step", INT64_MAX - 1, &step, NULL))
		return false;
	if (!l->ending->ended)
		l->ending->step = step + 1;
	l->ending->began = true;
	l->ending->has_loss = !hd_json_get_f64(line, "loss", &l->ending->loss, NULL);
	return true;
}

/* Whole lines, the last first, until one is taken. */
static void from_the_end(struct look *l, struct hd_fs *fs, const char *run, const char *name,
	bool (*take)(struct look *, const struct hd_json *))
{
	char path[HD_PATH_CAP], *room = hd_arena_take(&l->arena, TAIL + 1, 1);
	struct hd_file file;
	struct hd_stat stat;
	size_t got = 0;

	if (!room || (size_t)snprintf(path, sizeof path, "%s/%s", run, name) >= sizeof path ||
		hd_fs_stat(fs, path, &stat, NULL) ||
		hd_file_open(fs, path, HD_OPEN_READ, &file, NULL))
		return;
	if (hd_file_pread(&file, room, TAIL, stat.size_bytes > TAIL ? stat.size_bytes - TAIL : 0, &got, NULL))
		got = 0;
	(void)!hd_file_close(&file, NULL);
	while (got && room[got - 1] != '\n')      /* torn */
		got--;
	while (got) {
		size_t end = got - 1, at = end;
		const struct hd_json *line;
		while (at && room[at - 1] != '\n')
			at--;
		if (!hd_json_parse(&l->arena, name, room + at, end - at, &line, NULL) &&
			hd_json_kind(line) == HD_JSON_OBJECT && take(l, line))
			return;
		got = at;
	}
}

static void take_name(struct look *l, struct hd_fs *fs, const char *run)
{
	const struct hd_json *all, *job;
	char path[HD_PATH_CAP];
	const char *name = "";
	uint8_t *bytes;
	size_t len;

	if ((size_t)snprintf(path, sizeof path, "%s/job.resolved.json", run) < sizeof path &&
		!hd_file_read_all(fs, path, &l->arena, JOB_BYTES, &bytes, &len, NULL) &&
		!hd_json_parse(&l->arena, HD_RUN_JOB, (const char *)bytes, len, &all, NULL) &&
		(job = hd_json_find(all, "job")) &&
		!hd_json_get_text(job, "name", &name, NULL))
		snprintf(l->ending->name, sizeof l->ending->name, "%s", name);
}

enum hd_err hd_ending_look(struct hd_fs *fs, const char *run, struct hd_ending *ending, struct hd_diag *diag)
{
	struct look l = { .ending = ending };
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	*ending = (struct hd_ending){ .exit = -1 };
	snprintf(path, sizeof path, "%s/job.yaml", run);
	if (hd_fs_stat(fs, path, &stat, NULL))
		return hd_fail(diag, HD_E_NOTFOUND, "%s is not a run directory: it has no job.yaml", run);
	hd_arena_init(&l.arena, 0);
	from_the_end(&l, fs, run, "events.ndjson", take_event);
	from_the_end(&l, fs, run, "metrics.ndjson", take_record);
	take_name(&l, fs, run);
	hd_arena_finish(&l.arena);
	return HD_OK;
}

bool hd_ending_is_done(const struct hd_ending *e)
{
	return e->ended && e->exit == 0 && (e->reached || (e->steps && e->step >= e->steps));
}

bool hd_ending_is_stopped(const struct hd_ending *e)
{
	return e->ended && (e->exit == hd_err_exit(HD_E_PREEMPTED) ||
		e->exit == hd_err_exit(HD_E_INTERRUPT));
}

bool hd_ending_is_over(const struct hd_ending *e)
{
	return e->ended && (e->exit == 0 || (hd_ending_is_stopped(e) && !e->at_once));
}

const char *hd_ending_state(const struct hd_ending *e)
{
	return !e->began ? "new" : !e->ended ? "died" : e->exit < 0 ? "ended" : e->exit == 0 ? "done" :
		hd_ending_is_stopped(e) ? "stopped" : "failed";
}
