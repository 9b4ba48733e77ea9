#include "daemon/backup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hd_version.h"
#include "base/json.h"
#include "sys/crypto.h"
#include "sys/failpoint.h"
#include "driver/db.h"
#include "driver/pid_lock.h"
#include "daemon/answers.h"
#include "daemon/daemon.h"

enum { VERSION = 1, LIST_BYTES = 1 << 16, FILE_BYTES = 16 << 20 };

static const char *const files[] = {
	HD_BACKUP_STORE,
#define X(name, about) name,
	HD_BACKUP_FILES(X)
#undef X
};

enum { NFILES = sizeof files / sizeof *files };

static enum hd_err path_of(char path[HD_PATH_CAP], const char *folder, const char *name, struct hd_diag *diag)
{
	if ((size_t)snprintf(path, HD_PATH_CAP, "%s%s%s", folder, *name ? "/" : "", name) >= HD_PATH_CAP - 16)
		return hd_fail(diag, HD_E_INVAL, "the path %.80s... is too long", folder);
	return HD_OK;
}

/* ---- making ---- */

static enum hd_err count(const struct hd_db *copy, struct hd_backup *b, struct hd_diag *diag)
{
	int64_t jobs = 0, last = 0, event = 0;
	const struct { const char *sql; int64_t *n; } row[] = {
		{ "SELECT count(*) FROM job", &jobs }, { "SELECT coalesce(max(id), 0) FROM job", &last },
		{ "SELECT coalesce(max(number), 0) FROM event", &event }, { "PRAGMA user_version", &b->store },
	};
	struct hd_db db = *copy;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof row / sizeof *row && !err; i++)
		err = hd_db_number(&db, row[i].sql, row[i].n, diag);
	b->jobs = (uint64_t)jobs;
	b->last = (uint64_t)last;
	b->event = (uint64_t)event;
	return err;
}

static enum hd_err copy_store(const char *dir, struct hd_jobs *jobs, const char *to, struct hd_backup *b,
	struct hd_diag *diag)
{
	char from[HD_PATH_CAP];
	struct hd_db db = { 0 };
	enum hd_err err = path_of(from, dir, HD_BACKUP_STORE, diag);

	if (!err && jobs)
		err = hd_jobs_copy(jobs, to, diag);
	else if (!err)
		err = hd_db_look(&db, from, &hd_jobs_kind, diag);
	if (!err && !jobs)
		err = hd_db_copy(&db, to, diag);
	hd_db_close(&db);
	if (err)
		return err;
	err = hd_db_look(&db, to, &hd_jobs_kind, diag);
	err = err ? err : count(&db, b, diag);
	hd_db_close(&db);
	return err;
}

static enum hd_err copy_file(struct hd_fs *fs, const char *from, const char *to, struct hd_diag *diag)
{
	struct hd_arena arena;
	uint8_t *bytes = NULL;
	size_t len = 0;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_file_read_all(fs, from, &arena, FILE_BYTES, &bytes, &len, diag);
	err = err ? err : hd_file_write_atomic(fs, to, bytes, len, diag);
	hd_arena_finish(&arena);
	return err;
}

/* A member of "files": {"name", "bytes", "sha256"}. */
static enum hd_err put_file(struct hd_fs *fs, const char *folder, const char *name, struct hd_json_writer *w,
	struct hd_backup *b, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], hex[HD_SHA256_HEX];
	struct hd_sha256 sum;
	struct hd_stat stat;
	uint64_t len = 0;
	enum hd_err err = path_of(path, folder, name, diag);

	if (!err && hd_fs_stat(fs, path, &stat, NULL) == HD_E_NOTFOUND)
		return HD_OK;
	err = err ? err : hd_sha256_file(fs, path, &sum, &len, diag);
	if (err)
		return err;
	hd_sha256_hex(&sum, hex);
	b->bytes += len;
	if (!strcmp(name, HD_BACKUP_STORE))
		snprintf(b->digest, sizeof b->digest, "%s", hex);
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "name", name);
	hd_json_put_u64(w, "bytes", len);
	hd_json_put_text(w, "sha256", hex);
	hd_json_close(w);
	return HD_OK;
}

static enum hd_err write_list(struct hd_fs *fs, const char *folder, struct hd_backup *b, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_json_writer w;
	struct hd_arena arena;
	struct hd_text text;
	enum hd_err err = path_of(path, folder, HD_BACKUP_LIST, diag);

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "version", VERSION);
	hd_json_put_text(&w, "program", b->program);
	hd_json_put_i64(&w, "t_ms", b->t_ms);
	hd_json_put_i64(&w, "store", b->store);
	hd_json_put_u64(&w, "jobs", b->jobs);
	hd_json_put_u64(&w, "last", b->last);
	hd_json_put_u64(&w, "event", b->event);
	hd_json_open_array(&w, "files");
	for (size_t i = 0; i < NFILES && !err; i++)
		err = put_file(fs, folder, files[i], &w, b, diag);
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(&text, "\n");
	if (!err && text.full)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for %s", path);
	err = err ? err : hd_file_write_atomic(fs, path, text.at, text.len, diag);
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err copy_all(struct hd_fs *fs, const char *dir, struct hd_jobs *jobs, const char *part,
	struct hd_backup *b, struct hd_diag *diag)
{
	char from[HD_PATH_CAP], to[HD_PATH_CAP];
	struct hd_stat stat;
	enum hd_err err = path_of(to, part, HD_BACKUP_STORE, diag);

	err = err ? err : copy_store(dir, jobs, to, b, diag);
	for (size_t i = 1; i < NFILES && !err; i++) {
		err = path_of(from, dir, files[i], diag);
		err = err ? err : path_of(to, part, files[i], diag);
		if (!err && hd_fs_stat(fs, from, &stat, NULL) != HD_E_NOTFOUND)
			err = copy_file(fs, from, to, diag);
	}
	return err ? err : write_list(fs, part, b, diag);
}

/* The folder that holds `path`. */
static void parent_of(const char *path, char parent[HD_PATH_CAP])
{
	snprintf(parent, HD_PATH_CAP, "%s", path);
	char *slash = strrchr(parent, '/');
	if (!slash)
		snprintf(parent, HD_PATH_CAP, ".");
	else
		slash[slash == parent] = 0;
}

enum hd_err hd_backup_make(struct hd_fs *fs, const char *dir, struct hd_jobs *jobs, int64_t t_ms,
	const char *folder, struct hd_backup *made, struct hd_diag *diag)
{
	char part[HD_PATH_CAP], parent[HD_PATH_CAP];
	struct hd_backup b = { .t_ms = t_ms };
	struct hd_stat stat;
	enum hd_err err = path_of(part, folder, "", diag);

	snprintf(b.program, sizeof b.program, "heddle %s", HD_VERSION);
	if (!err && hd_fs_stat(fs, folder, &stat, NULL) != HD_E_NOTFOUND)
		err = hd_fail(diag, HD_E_EXISTS, "%s is there: name a folder that is not", folder);
	if (err)
		return err;
	strcat(part, ".part");
	/* of a backup that was cut short */
	err = hd_fs_stat(fs, part, &stat, NULL) == HD_E_NOTFOUND ? HD_OK : hd_fs_remove_tree(fs, part, diag);
	err = err ? err : hd_fs_mkdirs(fs, part, diag);
	err = err ? err : copy_all(fs, dir, jobs, part, &b, diag);
	err = err ? err : hd_fs_sync_folder(fs, part, diag);
	if (!err)
		(void)HD_FAILPOINT(BACKUP_WHOLE);
	err = err ? err : hd_fs_rename(fs, part, folder, diag);
	parent_of(folder, parent);
	err = err ? err : hd_fs_sync_folder(fs, parent, diag);
	if (err)
		(void)!hd_fs_remove_tree(fs, part, NULL);
	else
		*made = b;
	return err;
}

void hd_backup_put(const struct hd_backup *b, const char *folder, struct hd_json_writer *w)
{
	hd_fields_put(&hd_answer_backup_fields, 0, &(struct hd_answer_backup){ .folder = folder,
		.program = b->program, .t = (double)b->t_ms * 1e-3, .jobs = (int64_t)b->jobs,
		.last = (int64_t)b->last, .event = (int64_t)b->event, .size_bytes = (int64_t)b->bytes,
		.store = b->store, .sha256 = b->digest }, w);
}

/* ---- reading ---- */

static enum hd_err known_file(const char *list, const char *name, struct hd_diag *diag)
{
	for (size_t i = 0; i < NFILES; i++)
		if (!strcmp(files[i], name))
			return HD_OK;
	return hd_fail(diag, HD_E_INTEGRITY,
		"%s has a file %.80s, which this program knows nothing of: restore it with the program that "
		"made it", list, name);
}

static enum hd_err read_file(struct hd_fs *fs, const char *folder, const char *list, const struct hd_json *of,
	struct hd_backup *b, struct hd_diag *diag)
{
	const char *name = "", *hex = "";
	char path[HD_PATH_CAP];
	struct hd_sha256 want, sum;
	uint64_t bytes = 0, len = 0;
	enum hd_err err = hd_json_get_text(of, "name", &name, diag);

	err = err ? err : hd_json_get_text(of, "sha256", &hex, diag);
	err = err ? err : hd_json_get_u64(of, "bytes", INT64_MAX, &bytes, diag);
	err = err ? err : known_file(list, name, diag);
	err = err ? err : path_of(path, folder, name, diag);
	err = err ? err : hd_sha256_file(fs, path, &sum, &len, diag);
	if (err)
		return err;
	if (!hd_sha256_parse(hex, &want) || len != bytes || !hd_sha256_same(&sum, &want))
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s is not what %s says (%llu bytes of %llu, or other ones): take another backup",
			path, list, (unsigned long long)len, (unsigned long long)bytes);
	b->bytes += len;
	if (!strcmp(name, HD_BACKUP_STORE))
		snprintf(b->digest, sizeof b->digest, "%s", hex);
	return HD_OK;
}

static enum hd_err read_list(const struct hd_json *json, struct hd_backup *b, struct hd_diag *diag)
{
	const char *program = "";
	int64_t version = 0;
	enum hd_err err = hd_json_get_i64(json, "version", 1, VERSION, &version, diag);

	err = err ? err : hd_json_get_text(json, "program", &program, diag);
	err = err ? err : hd_json_get_i64(json, "t_ms", 0, INT64_MAX, &b->t_ms, diag);
	err = err ? err : hd_json_get_i64(json, "store", 1, INT32_MAX, &b->store, diag);
	err = err ? err : hd_json_get_u64(json, "jobs", INT64_MAX, &b->jobs, diag);
	err = err ? err : hd_json_get_u64(json, "last", INT64_MAX, &b->last, diag);
	err = err ? err : hd_json_get_u64(json, "event", INT64_MAX, &b->event, diag);
	snprintf(b->program, sizeof b->program, "%s", program);
	return err;
}

enum hd_err hd_backup_read(struct hd_fs *fs, const char *folder, struct hd_backup *backup,
	struct hd_diag *diag)
{
	const struct hd_json *json = NULL, *list = NULL;
	struct hd_backup b = { 0 };
	struct hd_arena arena;
	char path[HD_PATH_CAP];
	uint8_t *bytes = NULL;
	size_t len = 0;
	enum hd_err err = path_of(path, folder, HD_BACKUP_LIST, diag);

	hd_arena_init(&arena, 0);
	err = err ? err : hd_file_read_all(fs, path, &arena, LIST_BYTES, &bytes, &len, diag);
	err = err ? err : hd_json_parse(&arena, path, (const char *)bytes, len, &json, diag);
	err = err ? err : read_list(json, &b, diag);
	err = err ? err : hd_json_get(json, "files", HD_JSON_ARRAY, &list, diag);
	for (size_t i = 0; !err && i < hd_json_count(list); i++)
		err = read_file(fs, folder, path, hd_json_item(list, i), &b, diag);
	if (!err && !b.digest[0])
		err = hd_fail(diag, HD_E_INTEGRITY, "%s names no %s", path, HD_BACKUP_STORE);
	hd_arena_finish(&arena);
	if (!err)
		*backup = b;
	return err;
}

/* ---- restoring ---- */

struct restore {
	struct hd_fs *fs;
	struct hd_jobs *jobs;
	const struct hd_backup *backup;
	uint64_t delivered;               /* number of the last event that a webhook has delivered; 0: none */
	int64_t t_ms;
	hd_restore_says *says;
	void *user;
	struct hd_restored *found;
	struct ran { uint64_t id, step; uint32_t leases; char digest[HD_JOBS_DIGEST]; } *ran;
	size_t nran, cap;
};

/* Which process works in DIR, by the pid locks below `sub`; `lock`: a file in each folder of it. */
static enum hd_err refuse_working(struct hd_fs *fs, const char *dir, const char *sub, const char *lock,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP], **name = NULL;
	struct hd_pid_lock_holder holder;
	struct hd_arena arena;
	size_t n = 0;
	enum hd_err err = path_of(path, dir, sub, diag);

	hd_arena_init(&arena, 0);
	if (!err)
		err = hd_fs_list(fs, path, &arena, &name, &n, NULL) == HD_E_NOTFOUND ? HD_OK :
			hd_fs_list(fs, path, &arena, &name, &n, diag);
	for (size_t i = 0; i < n && !err; i++) {
		if ((size_t)snprintf(path, sizeof path, "%s/%s/%s%s", dir, sub, name[i], lock) >= sizeof path)
			err = hd_fail(diag, HD_E_INVAL, "the path %.80s... is too long", dir);
		else if (hd_pid_lock_look(fs, path, &holder, NULL) != HD_E_NOTFOUND)
			err = hd_fail(diag, HD_E_AGAIN,
				"%s: process %d of job %llu still works. Without a scheduler it commits and "
				"leaves by itself, after some rounds (30 s at least); then restore again",
				path, holder.pid, (unsigned long long)holder.job);
	}
	hd_arena_finish(&arena);
	return err;
}

/* Rule 5, for one job: looked at here, stored afterwards. */
static enum hd_err look_at(void *user, const struct hd_jobs_run *job, struct hd_diag *diag)
{
	struct restore *r = user;
	struct hd_run_held held = { 0 };
	struct hd_run_end end = { 0 };
	struct hd_stat stat;
	struct ran ran = { .id = job->id };

	(void)diag;
	if (hd_fs_stat(r->fs, job->run, &stat, NULL) == HD_E_NOTFOUND) {
		r->found->gone++;
		r->says(r->user, job->id, job->run, "its run's folder is gone");
		return HD_OK;
	}
	if (hd_run_lease(r->fs, job->run, &held, NULL) || held.lease <= job->leases)
		return HD_OK;
	ran.leases = held.lease;
	bool ended = held.job == job->id && !hd_run_end_get(r->fs, job->run, &end, NULL) &&
		end.lease == held.lease;
	ran.step = ended ? end.step : 0;
	bool done = ended && job->open && end.exit == 0 && end.step >= end.steps;
	if (done)
		snprintf(ran.digest, sizeof ran.digest, "%s", end.digest);
	r->found->ran++;
	r->found->done += done;
	r->says(r->user, job->id, job->run, done ? "ran since, and is done" : job->open ?
		"ran since, and goes on from its newest checkpoint" : "its run went on since");
	if (r->nran == r->cap)
		return hd_fail(diag, HD_E_BUG, "more jobs than were counted");
	r->ran[r->nran++] = ran;
	return HD_OK;
}

static enum hd_err count_one(void *user, const struct hd_jobs_run *job, struct hd_diag *diag)
{
	(void)job;
	(void)diag;
	++*(size_t *)user;
	return HD_OK;
}

static enum hd_err catch_up(struct restore *r, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = hd_jobs_runs(r->jobs, count_one, &r->cap, diag);

	r->ran = hd_arena_take(arena, r->cap + 1, sizeof *r->ran);
	if (!err && !r->ran)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for %zu jobs", r->cap);
	err = err ? err : hd_jobs_runs(r->jobs, look_at, r, diag);
	err = err ? err : hd_jobs_begin(r->jobs, diag);
	for (size_t i = 0; i < r->nran && !err; i++)
		err = hd_jobs_put_ran(r->jobs, r->ran[i].id, r->ran[i].leases, r->ran[i].step,
			r->ran[i].digest, diag);
	if (!err) {
		char text[HD_BACKUP_PROGRAM + 200];
		snprintf(text, sizeof text,
			"from the backup of %lld s ago: %llu jobs ran since, "
			"%llu of them are done, %llu runs of later jobs stay without one",
			(long long)((r->t_ms - r->backup->t_ms) / 1000), (unsigned long long)r->found->ran,
			(unsigned long long)r->found->done, (unsigned long long)r->found->unknown);
		err = hd_jobs_put_first(r->jobs, r->delivered, r->t_ms, "restored", text, diag);
	}
	return err ? err : hd_jobs_commit(r->jobs, diag);
}

/* Runs of jobs with greater numbers than the backup's. */
static enum hd_err find_unknown(struct restore *r, const char *dir, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], **name = NULL;
	struct hd_arena arena;
	size_t n = 0;
	enum hd_err err = path_of(path, dir, "runs", diag);

	hd_arena_init(&arena, 0);
	err = err ? err : hd_fs_list(r->fs, path, &arena, &name, &n, diag);
	for (size_t i = 0; i < n && !err; i++) {
		uint64_t id = strtoull(name[i], NULL, 10);
		if (id <= r->backup->last)
			continue;
		r->found->unknown++;
		if ((size_t)snprintf(path, sizeof path, "%s/runs/%s", dir, name[i]) < sizeof path)
			r->says(r->user, id, path, "was submitted since: its run stays, and no job knows it");
	}
	hd_arena_finish(&arena);
	return err;
}

/* One that is there and is the same is left; `write` false: only looked at. */
static enum hd_err put_back(struct hd_fs *fs, const char *dir, const char *folder, bool write,
	struct hd_diag *diag)
{
	char from[HD_PATH_CAP], to[HD_PATH_CAP];
	struct hd_sha256 here, there;
	struct hd_stat stat;
	uint64_t len;
	enum hd_err err = HD_OK;

	for (size_t i = 1; i < NFILES && !err; i++) {
		err = path_of(from, folder, files[i], diag);
		err = err ? err : path_of(to, dir, files[i], diag);
		if (err || hd_fs_stat(fs, from, &stat, NULL))
			continue;
		if (hd_fs_stat(fs, to, &stat, NULL) == HD_E_NOTFOUND) {
			err = write ? copy_file(fs, from, to, diag) : HD_OK;
			continue;
		}
		err = hd_sha256_file(fs, from, &here, &len, diag);
		err = err ? err : hd_sha256_file(fs, to, &there, &len, diag);
		if (!err && !hd_sha256_same(&here, &there))
			err = hd_fail(diag, HD_E_EXISTS,
				"%s is there and differs from %s: move it away, then restore", to, from);
	}
	return err;
}

/* The file of webhook.h; without one no event was. */
static enum hd_err read_delivered(struct hd_fs *fs, const char *dir, uint64_t *number, struct hd_diag *diag)
{
	struct hd_arena arena;
	char path[HD_PATH_CAP];
	uint8_t *bytes = NULL;
	size_t len = 0;
	enum hd_err err = path_of(path, dir, "webhook", diag);

	hd_arena_init(&arena, 0);
	if (!err && !hd_file_read_all(fs, path, &arena, 64, &bytes, &len, NULL))
		*number = strtoull((const char *)bytes, NULL, 10);
	hd_arena_finish(&arena);
	return err;
}

/* The store first grows up beside its place, then takes it within the lock of an empty one. */
static enum hd_err restore_store(struct restore *r, const char *dir, const char *folder,
	struct hd_diag *diag)
{
	char from[HD_PATH_CAP], part[HD_PATH_CAP], to[HD_PATH_CAP];
	struct hd_jobs *place = NULL;
	struct hd_stat stat;
	struct hd_arena arena;
	enum hd_err err = path_of(from, folder, HD_BACKUP_STORE, diag);

	hd_arena_init(&arena, 0);
	err = err ? err : path_of(part, dir, HD_BACKUP_STORE ".part", diag);
	err = err ? err : path_of(to, dir, HD_BACKUP_STORE, diag);
	/* held until the end: no scheduler begins meanwhile */
	err = err ? err : hd_jobs_open(&place, to, NULL, 0, diag);
	if (!err && (hd_jobs_last(place) || hd_jobs_last_event(place)))
		err = hd_fail(diag, HD_E_EXISTS,
			"%s has jobs: move it away (with its -wal, if there is one), then restore", to);
	if (!err && !hd_fs_stat(r->fs, part, &stat, NULL))
		err = hd_fs_unlink(r->fs, part, diag);
	struct hd_db db = { 0 };
	if (!err) {
		err = hd_db_look(&db, from, &hd_jobs_kind, diag);
		err = err ? err : hd_db_copy(&db, part, diag);
		hd_db_close(&db);
	}
	err = err ? err : hd_jobs_open(&r->jobs, part, NULL, 0, diag);
	err = err ? err : find_unknown(r, dir, diag);
	err = err ? err : catch_up(r, &arena, diag);
	hd_jobs_close(r->jobs);
	if (!err)
		(void)HD_FAILPOINT(RESTORE_PLACE);
	err = err ? err : hd_jobs_fill(place, part, diag);
	hd_jobs_close(place);
	(void)!hd_fs_unlink(r->fs, part, NULL);
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_backup_restore(struct hd_fs *fs, const char *dir, const char *folder, int64_t t_ms,
	hd_restore_says *says, void *user, struct hd_backup *backup, struct hd_restored *restored,
	struct hd_diag *diag)
{
	struct hd_restored found = { 0 };
	struct restore r = { .fs = fs, .backup = backup, .t_ms = t_ms, .says = says, .user = user,
		.found = &found };
	char runs[HD_PATH_CAP];
	enum hd_err err = path_of(runs, dir, "runs", diag);

	err = err ? err : hd_backup_read(fs, folder, backup, diag);
	err = err ? err : hd_fs_mkdirs(fs, runs, diag);
	err = err ? err : refuse_working(fs, dir, "devices", "", diag);
	err = err ? err : refuse_working(fs, dir, "runs", "/" HD_RUN_PID_LOCK, diag);
	err = err ? err : put_back(fs, dir, folder, false, diag);
	err = err ? err : put_back(fs, dir, folder, true, diag);
	err = err ? err : read_delivered(fs, dir, &r.delivered, diag);
	err = err ? err : restore_store(&r, dir, folder, diag);
	if (!err)
		*restored = found;
	return err;
}
