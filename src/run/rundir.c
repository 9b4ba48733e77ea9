#include "run/rundir.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json_writer.h"
#include "base/num.h"
#include "sys/failpoint.h"

enum { HD_LINE_CAP = 4096, HD_MAX_SAME_NAME = 10000, HD_HOLD_TEXT = 200, HD_HOLD_WORD = 9 };
#define HD_GONE_LOOK_NS INT64_C(1000000000)
#define HD_LOCK_WAIT_NS INT64_C(500000000)    /* an observer holds a lock for an instant */
#define HD_LOCK_LOOK_NS INT64_C(5000000)

void hd_rundir_path(const struct hd_rundir *dir, const char *name, char *path, size_t cap)
{
	snprintf(path, cap, "%s/%s", dir->path, name);
}

static enum hd_err open_lines(struct hd_rundir *dir, const char *name, struct hd_lines *lines,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];

	hd_rundir_path(dir, name, path, sizeof path);
	return hd_lines_open(lines, dir->fs, path, diag);
}

static enum hd_err held_by_another(const struct hd_rundir *dir, struct hd_diag *diag)
{
	struct hd_held held = { .hold = HD_HOLD_NONE };

	if (hd_rundir_held(dir->fs, dir->path, &held, NULL) || !held.host[0])
		return hd_fail(diag, HD_E_AGAIN, "%s: another process is running it; wait for it or stop it",
			dir->path);
	return hd_fail(diag, HD_E_AGAIN,
		"%s: another process is running it on %s; wait for it or stop it there", dir->path,
		held.host);
}

static enum hd_err take_lock(struct hd_rundir *dir, struct hd_diag *diag)
{
	struct hd_stat stat = { 0 };
	char path[HD_PATH_CAP];

	hd_rundir_path(dir, "lock", path, sizeof path);
	enum hd_err err = hd_file_open(dir->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &dir->lock, diag);
	if (err)
		return err;
	int64_t until_ns = hd_clock_now_ns(dir->clock) + HD_LOCK_WAIT_NS;
	while ((err = hd_file_lock(&dir->lock, NULL)) == HD_E_AGAIN && hd_clock_now_ns(dir->clock) < until_ns)
		hd_clock_wait_until(dir->clock, hd_clock_now_ns(dir->clock) + HD_LOCK_LOOK_NS);
	if (err)
		return held_by_another(dir, diag);
	err = hd_fs_stat(dir->fs, path, &stat, diag);
	dir->lock_inode = stat.inode;
	hd_rundir_hold_as(dir, HD_HOLD_BEGINS);
	return err;
}

/* A file system that does not answer is no folder that is gone. */
bool hd_rundir_is_gone(struct hd_rundir *dir)
{
	const int64_t now = hd_clock_now_ns(dir->clock);
	char path[HD_PATH_CAP];
	struct hd_stat stat = { 0 };

	if (dir->gone || !dir->lock.fs || (dir->looked_ns && now - dir->looked_ns < HD_GONE_LOOK_NS))
		return dir->gone;
	dir->looked_ns = now;
	hd_rundir_path(dir, "lock", path, sizeof path);
	enum hd_err err = hd_fs_stat(dir->fs, path, &stat, NULL);
	const bool missed = err ? err == HD_E_NOTFOUND : stat.inode != dir->lock_inode;
	dir->gone = missed && dir->missed;
	dir->missed = missed;
	return dir->gone;
}

static const char *const hold_word[] = { [HD_HOLD_NONE] = "nobody", [HD_HOLD_BEGINS] = "begins",
	[HD_HOLD_ALONE] = "alone",
	[HD_HOLD_EVALUATES] = "evaluates",
	[HD_HOLD_COORDINATES] = "conducts" };

/* "alone     1234 567890 node7 <boot>": the word, the process, when that began, where. It helps observers;
 * a run does without. All texts are of one length and those of one process differ in the word alone: the next
 * takes the place of the last in one write, and no observer finds the file empty. */
void hd_rundir_hold_as(struct hd_rundir *dir, enum hd_hold hold)
{
	char text[HD_HOLD_TEXT], boot[HD_HASH_HEX];
	struct hd_proc_self self;
	struct hd_hash id;

	if (!dir->lock.fs)
		return;
	hd_proc_self(&self);
	memcpy(id.byte, self.boot, sizeof id.byte);
	hd_hash_hex(id, boot);
	int n = snprintf(text, sizeof text, "%-*s %u %llu %s %s", HD_HOLD_WORD, hold_word[hold], self.pid,
		(unsigned long long)hd_pid_began((int)self.pid), self.host, boot);
	assert(n > 0 && (size_t)n < sizeof text);
	memset(text + n, ' ', sizeof text - (size_t)n);
	text[sizeof text - 1] = '\n';
	(void)!hd_file_pwrite(&dir->lock, text, sizeof text, 0, NULL);
}

/* A process of this boot is known by its number and beginning; of another one neither means anything.
 * Machines are distinguished by their names: this one may have rebooted. `locked` false: no process of
 * this boot is left, whatever the name; a lock of another machine may not be seen here. */
static void read_holder(const char *text, bool locked, struct hd_held *held)
{
	char word[16], host[HD_HOST_CAP] = "", boot[HD_HASH_HEX] = "";
	struct hd_proc_self self;
	struct hd_hash id;
	unsigned long long began;
	unsigned of;
	int n = sscanf(text, "%15s %u %llu %64s %32s", word, &of, &began, host, boot);

	held->hold = locked ? HD_HOLD_BEGINS : HD_HOLD_NONE;
	if (n < 3)
		return;
	hd_proc_self(&self);
	bool placed = n == 5 && hd_hash_parse(boot, &id), same_boot = placed &&
		!memcmp(id.byte, self.boot, sizeof id.byte);
	bool here = locked && (!placed || same_boot) && began && hd_pid_began((int)of) == began;
	bool elsewhere = placed && !here && strcmp(host, self.host) != 0 && (locked || !same_boot);
	if (here)
		held->pid = (int)of;
	if (elsewhere)
		snprintf(held->host, sizeof held->host, "%s", host);
	for (size_t i = HD_HOLD_BEGINS; i < sizeof hold_word / sizeof *hold_word && locked &&
		(here || elsewhere); i++)
		held->hold = !strcmp(word, hold_word[i]) ? (enum hd_hold)i : held->hold;
}

/* The lock, not the text, says whether a process holds it: a run that ends leaves the text as it is. */
enum hd_err hd_rundir_held(struct hd_fs *fs, const char *path, struct hd_held *held, struct hd_diag *diag)
{
	char name[HD_PATH_CAP], text[HD_HOLD_TEXT + 1] = "";
	struct hd_file file;
	size_t got = 0;

	*held = (struct hd_held){ .hold = HD_HOLD_NONE };
	snprintf(name, sizeof name, "%s/lock", path);
	enum hd_err err = hd_file_open(fs, name, HD_OPEN_READ, &file, NULL);
	if (err)
		return err == HD_E_NOTFOUND ? HD_OK : hd_fail(diag, err, "%s cannot be opened", name);
	enum hd_err lock = hd_file_lock_shared(&file, NULL);
	err = lock && lock != HD_E_AGAIN ? hd_fail(diag, lock, "%s cannot be locked", name) :
		hd_file_pread(&file, text, sizeof text - 1, 0, &got, diag);
	if (!err)
		read_holder(text, lock == HD_E_AGAIN, held);
	(void)!hd_file_close(&file, NULL);
	return err;
}

enum hd_err hd_rundir_visit(struct hd_rundir *dir, struct hd_fs *fs, struct hd_clock *clock, const char *path,
	struct hd_diag *diag)
{
	char name[HD_PATH_CAP];
	struct hd_stat stat;

	*dir = (struct hd_rundir){ .fs = fs, .clock = clock, .began_ns = hd_clock_now_ns(clock) };
	if (strlen(path) >= sizeof dir->path)
		return hd_fail(diag, HD_E_INVAL, "the path of the run is longer than %zu bytes",
			sizeof dir->path - 1);
	strncpy(dir->path, path, sizeof dir->path - 1);
	hd_rundir_path(dir, "job.yaml", name, sizeof name);
	if (hd_fs_stat(fs, name, &stat, NULL))
		return hd_fail(diag, HD_E_NOTFOUND, "%s is not a run directory: it has no job.yaml", path);
	return HD_OK;
}

enum hd_err hd_rundir_open(struct hd_rundir *dir, struct hd_fs *fs, struct hd_clock *clock, const char *path,
	struct hd_diag *diag)
{
	enum hd_err err = hd_rundir_visit(dir, fs, clock, path, diag);

	if (!err)
		err = take_lock(dir, diag);
	if (!err)
		err = open_lines(dir, "metrics.ndjson", &dir->metrics, diag);
	if (!err)
		err = open_lines(dir, "events.ndjson", &dir->events, diag);
	if (err)
		hd_rundir_close(dir);
	return err;
}

enum hd_err hd_rundir_has_job(struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	char name[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(name, sizeof name, "%s/" HD_RUN_JOB, path);
	return hd_fs_stat(fs, name, &stat, NULL) != HD_E_NOTFOUND ? HD_OK : hd_fail(diag, HD_E_NOTFOUND,
		"%s was stopped before its job lay in it, and trained nothing: remove it, `rm -r %s`, and "
		"start the job again with `heddle run`", path, path);
}

/* runs/<name>, or the first free <name>-2, <name>-3 ...: mkdir decides, so two that start together get two
 * names. */
static enum hd_err fresh_folder(struct hd_fs *fs, const char *parent, const char *name, char *path,
	size_t cap, struct hd_diag *diag)
{
	char runs[HD_PATH_CAP];
	enum hd_err err;

	snprintf(runs, sizeof runs, "%s/runs", parent);
	err = hd_fs_mkdirs(fs, runs, diag);
	for (uint32_t n = 1; !err && n < HD_MAX_SAME_NAME; n++) {
		char number[16] = "";
		if (n > 1)
			snprintf(number, sizeof number, "-%u", n);
		if ((size_t)snprintf(path, cap, "%s/%s%s", runs, name, number) >= cap)
			return hd_fail(diag, HD_E_INVAL,
				"the path of the run, %s/%s, is longer than %zu bytes", runs, name, cap - 1);
		err = hd_fs_mkdir(fs, path, NULL);
		if (err != HD_E_EXISTS)
			return err ? hd_fs_mkdir(fs, path, diag) : HD_OK;
		err = HD_OK;
	}
	return err ? err : hd_fail(diag, HD_E_REFUSED, "%s holds %d runs named %s: remove some", runs,
		HD_MAX_SAME_NAME, name);
}

static enum hd_err given_folder(struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	char name[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(name, sizeof name, "%s/job.yaml", path);
	if (!hd_fs_stat(fs, name, &stat, NULL))
		return hd_rundir_has_job(fs, path, diag) ? HD_E_INVAL : hd_fail(diag, HD_E_INVAL,
			"%s holds a run already: continue it with `heddle resume %s`, or choose another "
			"--out", path, path);
	return hd_fs_mkdirs(fs, path, diag);
}

enum hd_err hd_rundir_create(struct hd_rundir *dir, struct hd_fs *fs, struct hd_clock *clock,
	const char *parent, const char *out,
	const char *name, const char *job_yaml, size_t job_len, struct hd_diag *diag)
{
	char path[sizeof dir->path], sub[HD_PATH_CAP];
	struct hd_stat stat;
	enum hd_err err;

	*dir = (struct hd_rundir){ .fs = fs };
	if (strlen(out ? out : parent) + HD_MAX_NAME >= sizeof path)
		return hd_fail(diag, HD_E_INVAL, "the path of the run is longer than %zu bytes",
			sizeof path - HD_MAX_NAME);
	if (out)
		snprintf(path, sizeof path, "%s", out);
	bool fresh = !out || hd_fs_stat(fs, out, &stat, NULL) == HD_E_NOTFOUND;
	err = out ? given_folder(fs, out, diag) : fresh_folder(fs, parent, name, path, sizeof path, diag);
	if (!err) {
		snprintf(sub, sizeof sub, "%s/job.yaml", path);
		err = hd_file_write_atomic(fs, sub, job_yaml, job_len, diag);
	}
	static const char *const folders[] = { "ckpt", "plan", "flight", "log" };
	for (size_t i = 0; i < sizeof folders / sizeof *folders && !err; i++) {
		snprintf(sub, sizeof sub, "%s/%s", path, folders[i]);
		err = hd_fs_mkdirs(fs, sub, diag);
	}
	err = err ? err : hd_rundir_open(dir, fs, clock, path, diag);
	dir->fresh = fresh && !err;
	return err;
}

/* How many lines of metrics were lost is an event; it may not fit either, and is then tried with the next
 * line and at the end. */
static void report_lost(struct hd_rundir *dir)
{
	uint64_t lost = dir->metrics.lost;
	uint64_t before = dir->events.lost;
	char body[160];

	if (!lost)
		return;
	snprintf(body, sizeof body,
		"\"text\":\"%llu steps have no line in metrics.ndjson: it could not be written, look at the "
		"space of this disk\"",
		(unsigned long long)lost);
	hd_rundir_event(dir, "unrecorded", dir->step, body);
	if (dir->events.lost != before)
		return;
	dir->said_lost += lost;
	dir->metrics.lost = 0;
}

uint64_t hd_rundir_lost(const struct hd_rundir *dir)
{
	return dir->said_lost + dir->metrics.lost + dir->events.lost;
}

static void say_watched(void *user, const char *kind, const char *text)
{
	struct hd_rundir *dir = user;
	char body[HD_LINE_CAP / 2];
	struct hd_text line;
	struct hd_json_writer w;

	hd_text_fixed(&line, body, sizeof body);
	hd_json_writer_init(&w, &line);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "text", text);
	if (!line.full)
		hd_rundir_event(dir, kind, dir->step, body + 1);
}

void hd_rundir_watch(struct hd_rundir *dir, const struct hd_job *job, uint64_t step)
{
	hd_monitor_close(dir->monitor);
	dir->monitor = NULL;
	hd_monitor_open(&dir->monitor, &(struct hd_monitor_spec){ .fs = dir->fs, .clock = dir->clock,
		.job = job, .folder = dir->path, .step = step, .say = say_watched, .user = dir });
}

void hd_rundir_close(struct hd_rundir *dir)
{
	hd_monitor_close(dir->monitor);
	dir->monitor = NULL;
	report_lost(dir);
	dir->lines_lost |= hd_lines_close(&dir->metrics, NULL) != HD_OK;
	dir->lines_lost |= hd_lines_close(&dir->events, NULL) != HD_OK;
	dir->lines_lost |= hd_file_close(&dir->lock, NULL) != HD_OK;
}

void hd_rundir_discard(struct hd_rundir *dir)
{
	bool fresh = dir->fresh;

	hd_rundir_close(dir);
	if (fresh && hd_fs_remove_tree(dir->fs, dir->path, NULL))
		dir->lines_lost = true;
}

enum hd_err hd_rundir_put(struct hd_rundir *dir, const char *name, const char *bytes, size_t len,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];

	hd_rundir_path(dir, name, path, sizeof path);
	return hd_file_write_atomic(dir->fs, path, bytes, len, diag);
}

static double seconds(const struct hd_rundir *dir)
{
	return (double)((hd_clock_now_ns(dir->clock) - dir->began_ns) / 1000000) / 1000.0;
}

/* A lost line is not worth a lost run: the checkpoint, not the log, is the result. */
static bool append(struct hd_rundir *dir, struct hd_lines *lines, struct hd_text *line, int error)
{
	hd_text_add(line, "\n");
	bool put = !error && !line->full && !hd_lines_add(lines, line->at, line->len, NULL);

	lines->lost += error || line->full;
	dir->lines_lost |= !put;
	return put;
}

/* "loss_1": 0.5, ... */
static void put_terms(struct hd_json_writer *w, uint32_t n, const double *sum, double weight)
{
	char key[] = "loss_1";

	for (uint32_t i = 0; i < n; i++, key[5]++)
		hd_json_put_f32(w, key, (float)(weight > 0 ? sum[i] / weight : 0));
}

void hd_rundir_metrics(struct hd_rundir *dir, const struct hd_step_record *r,
	const struct hd_step_times *times, uint32_t plan)
{
	char room[HD_LINE_CAP], hex[HD_HASH_HEX];
	struct hd_text line;
	struct hd_json_writer w;

	hd_text_fixed(&line, room, sizeof room);
	hd_json_writer_init(&w, &line);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "v", 1);
	hd_json_put_i64(&w, "step", (int64_t)r->step);
	hd_json_put_f64(&w, "t", seconds(dir));
	hd_json_put_f32(&w, "loss", (float)(r->weight > 0 ? r->loss_sum / r->weight : 0));
	put_terms(&w, r->nterms, r->term_sum, r->weight);
	hd_json_put_f32(&w, "lr", r->lr);
	hd_json_put_i64(&w, "samples", (int64_t)r->samples);
	hd_json_put_i64(&w, "epoch", (int64_t)r->epoch);
	hd_json_put_f64(&w, "weight", r->weight);
	hd_json_put_f32(&w, "gnorm", (float)r->gnorm);
	hd_json_put_i64(&w, "workers", times->workers);
	hd_json_put_i64(&w, "membership", times->membership);
	hd_json_put_i64(&w, "plan", plan);
	hd_json_put_f32(&w, "step_ms", (float)times->step_ms);
	hd_json_put_f32(&w, "wait_ms", (float)times->wait_ms);
	hd_json_put_f32(&w, "read_wait_ms", (float)r->wait_data_ns * 1e-6f);
	hd_json_put_i64(&w, "bytes_out", (int64_t)times->bytes_out);
	hd_json_put_i64(&w, "redone_vn", times->redone);
	if (r->has_digest) {
		hd_hash_hex(r->digest, hex);
		hd_json_put_text(&w, "digest", hex);
	} else {
		hd_json_put_null(&w, "digest");
	}
	hd_json_close(&w);
	size_t len = line.len;
	int error = HD_FAILPOINT_BYTES(METRICS_WRITE, line.at, &len);
	line.len = len;
	dir->step = r->step;
	if (append(dir, &dir->metrics, &line, error))
		report_lost(dir);
	hd_monitor_line(dir->monitor, r, times);
}

void hd_rundir_stepped(struct hd_rundir *dir, const struct hd_step_record *r,
	const struct hd_step_times *times, uint32_t plan)
{
	hd_monitor_step(dir->monitor, r, times, plan, hd_rundir_lost(dir));
}

/* What cannot be synced may be lost; it is not worth a lost run either. */
void hd_rundir_sync(struct hd_rundir *dir)
{
	const struct hd_lines *const lines[] = { &dir->metrics, &dir->events };

	if (!dir->lock.fs)                /* of a visitor */
		return;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		dir->lines_lost |= lines[i]->file.fs && hd_file_sync(&lines[i]->file, NULL) != HD_OK;
	dir->named = dir->named || hd_fs_sync_folder(dir->fs, dir->path, NULL) == HD_OK;
}

/* Of the last whole line in `room` that has `with`: its step and 1; 0: there is none. */
static uint64_t last_in(const char *room, const char *with)
{
	static const char head[] = "{\"v\":1,\"step\":";
	char number[HD_NUM_CAP];
	uint64_t next = 0, step;

	for (const char *at = strstr(room, head); at; at = strstr(at + 1, head)) {
		snprintf(number, sizeof number, "%.*s", (int)strcspn(at + sizeof head - 1, ",}"),
			at + sizeof head - 1);
		const char *end = strchr(at, '\n'), *has = strstr(at, with);
		if (end && has && has < end && !hd_num_u64(number, INT64_MAX, &step, NULL))
			next = step + 1;
	}
	return next;
}

/* From the end on, a line's length at a time: lines of digests may be many steps apart. */
static uint64_t last_line(const struct hd_rundir *dir, const char *with)
{
	char path[HD_PATH_CAP], room[2 * HD_LINE_CAP + 1];
	struct hd_file file = { 0 };
	struct hd_stat stat;
	uint64_t next = 0;

	hd_rundir_path(dir, "metrics.ndjson", path, sizeof path);
	if (hd_fs_stat(dir->fs, path, &stat, NULL) || hd_file_open(dir->fs, path, HD_OPEN_READ, &file, NULL))
		return 0;
	for (int64_t end = stat.size_bytes; end > 0 && !next; end -= HD_LINE_CAP) {
		int64_t from = end > 2 * HD_LINE_CAP ? end - 2 * HD_LINE_CAP : 0;
		size_t got = 0;
		if (hd_file_pread(&file, room, (size_t)(end - from), from, &got, NULL))
			break;
		room[got] = '\0';
		next = last_in(room, with);
	}
	(void)!hd_file_close(&file, NULL);
	return next;
}

uint64_t hd_rundir_recorded(const struct hd_rundir *dir) { return last_line(dir, "\"step\":"); }
uint64_t hd_rundir_verified(const struct hd_rundir *dir) { return last_line(dir, "\"digest\":\""); }

struct event { char room[HD_LINE_CAP]; struct hd_text line; struct hd_json_writer w; };

static void put_head(const struct hd_rundir *dir, struct hd_json_writer *w, struct hd_text *line,
	const char *kind, uint64_t step)
{
	hd_json_writer_init(w, line);
	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "v", 1);
	hd_json_put_f64(w, "t", seconds(dir));
	hd_json_put_text(w, "kind", kind);
	hd_json_put_i64(w, "step", (int64_t)step);
	hd_json_put_i64(w, "membership", dir->membership);
}

static struct hd_json_writer *event_begin(const struct hd_rundir *dir, struct event *e, const char *kind,
	uint64_t step)
{
	hd_text_fixed(&e->line, e->room, sizeof e->room);
	put_head(dir, &e->w, &e->line, kind, step);
	return &e->w;
}

static void event_end(struct hd_rundir *dir, struct event *e)
{
	hd_json_close(&e->w);
	size_t len = e->line.len;
	int error = HD_FAILPOINT_BYTES(EVENTS_WRITE, e->line.at, &len);
	e->line.len = len;
	(void)append(dir, &dir->events, &e->line, error);
}

void hd_rundir_event(struct hd_rundir *dir, const char *kind, uint64_t step, const char *body)
{
	struct event e;

	event_begin(dir, &e, kind, step);
	if (*body)
		hd_text_addf(&e.line, ",%s", body);
	event_end(dir, &e);
	hd_monitor_event(dir->monitor, kind, step, body);
}

bool hd_rundir_event_line(const struct hd_rundir *dir, struct hd_text *line, const char *kind, uint64_t step,
	const char *body)
{
	struct hd_json_writer w;

	put_head(dir, &w, line, kind, step);
	if (*body)
		hd_text_addf(line, ",%s", body);
	hd_json_close(&w);
	hd_text_add(line, "\n");
	return !line->full;
}

void hd_rundir_measures(struct hd_json_writer *w, const struct hd_metrics *metrics)
{
	double value;

	put_terms(w, metrics->nterms, metrics->term_sum, metrics->weight);
	for (int i = 0; i < HD_NMEASURES; i++) {
		const char *word = hd_metrics_measure(metrics, i, &value);
		if (word)
			hd_json_put_f64(w, word, value);
	}
}

void hd_rundir_eval_body(struct hd_json_writer *w, const char *split, const struct hd_metrics *metrics)
{
	hd_json_put_text(w, "split", split);
	hd_json_put_f32(w, "loss", (float)hd_metrics_loss(metrics));
	if (hd_metrics_has_accuracy(metrics))
		hd_json_put_f32(w, "accuracy", (float)hd_metrics_accuracy(metrics));
	if (metrics->has_hits)
		hd_json_put_f32(w, "perplexity", (float)hd_metrics_perplexity(metrics));
	hd_rundir_measures(w, metrics);
	hd_json_put_i64(w, "rows", (int64_t)metrics->rows);
}

void hd_rundir_eval(struct hd_rundir *dir, uint64_t step, const char *split, const struct hd_metrics *metrics)
{
	char room[HD_LINE_CAP / 2];
	struct hd_json_writer w;
	struct hd_text body;

	hd_text_fixed(&body, room, sizeof room);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	hd_rundir_eval_body(&w, split, metrics);          /* { and the body; the event closes it */
	hd_rundir_event(dir, "eval", step, body.full ? "" : body.at + 1);
}
