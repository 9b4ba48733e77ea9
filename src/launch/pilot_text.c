#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "launch/pilot.h"

/* The files of pilots: one JSON object each, read by machines of one program, maybe of two versions: members
 * that are not known are passed over, those that lack are zero. */

static const char *const words[] = {
#define X(id, word) word,
	HD_PILOT_WHATS(X)
#undef X
};

/* ---- what a member is */

enum kind { NUMBER, SMALL, CODE, TRUTH, TEXT, WHAT };
struct pilot_member { const char *key; enum kind kind; size_t at, cap; };

#define AT(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)
static const struct pilot_member of_order[] = {
	{ "n", NUMBER, AT(hd_pilot_order, n) }, { "do", WHAT, AT(hd_pilot_order, what) },
	{ "job", NUMBER, AT(hd_pilot_order, job) }, { "lease", SMALL, AT(hd_pilot_order, lease) },
	{ "until", NUMBER, AT(hd_pilot_order, until) }, { "run", TEXT, AT(hd_pilot_order, run) },
	{ "device", TEXT, AT(hd_pilot_order, device) },
};
static const struct pilot_member of_state[] = {
	{ "beat", NUMBER, AT(hd_pilot_state, beat) }, { "n", NUMBER, AT(hd_pilot_state, n) },
	{ "job", NUMBER, AT(hd_pilot_state, job) }, { "lease", SMALL, AT(hd_pilot_state, lease) },
	{ "code", CODE, AT(hd_pilot_state, code) }, { "worker", CODE, AT(hd_pilot_state, worker) },
	{ "leaving", TRUTH, AT(hd_pilot_state, leaving) }, { "node", TEXT, AT(hd_pilot_state, node) },
	{ "place", TEXT, AT(hd_pilot_state, place) },
};
static const struct pilot_member of_scheduler[] = {
	{ "beat", NUMBER, AT(hd_pilot_scheduler, beat) }, { "ended", TRUTH, AT(hd_pilot_scheduler, ended) },
};
enum { NORDER = sizeof of_order / sizeof *of_order, NSTATE = sizeof of_state / sizeof *of_state,
	NSCHEDULER = sizeof of_scheduler / sizeof *of_scheduler };

/* ---- reading */

static enum hd_err take_text(const struct hd_json *json, const struct pilot_member *m, char *to,
	struct hd_diag *diag)
{
	const char *text = "";
	enum hd_err err = hd_json_as_text(json, &text, diag);

	if (!err && (size_t)snprintf(to, m->cap, "%s", text) >= m->cap)
		err = hd_fail(diag, HD_E_INPUT, "\"%s\" is longer than %zu", m->key, m->cap - 1);
	return err;
}

static enum hd_err take_what(const struct hd_json *json, enum hd_pilot_what *to, struct hd_diag *diag)
{
	const char *word = "";
	enum hd_err err = hd_json_as_text(json, &word, diag);

	for (int i = 0; i < HD_PILOT_NWHATS && !err; i++)
		if (!strcmp(words[i], word)) {
			*to = (enum hd_pilot_what)i;
			return HD_OK;
		}
	return err ? err : hd_fail(diag, HD_E_INPUT, "\"do\": \"%.40s\" is none of an order's", word);
}

static enum hd_err take(const struct hd_json *json, const struct pilot_member *m, void *to,
	struct hd_diag *diag)
{
	uint64_t u = 0;
	int64_t i = 0;
	enum hd_err err = HD_OK;

	switch (m->kind) {
	case NUMBER:
		return hd_json_as_u64(json, INT64_MAX, to, diag);
	case SMALL:
		err = hd_json_as_u64(json, UINT32_MAX, &u, diag);
		*(uint32_t *)to = (uint32_t)u;
		return err;
	case CODE:
		err = hd_json_as_i64(json, -1, INT32_MAX, &i, diag);
		*(int32_t *)to = (int32_t)i;
		return err;
	case TRUTH:
		return hd_json_as_bool(json, to, diag);
	case TEXT:
		return take_text(json, m, to, diag);
	case WHAT:
		return take_what(json, to, diag);
	}
	return HD_OK;
}

static enum hd_err read_file(struct hd_fs *fs, const char *path, const struct pilot_member *members, size_t n,
	void *to, struct hd_diag *diag)
{
	const struct hd_json *json = NULL;
	struct hd_arena arena;
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_file_read_all(fs, path, &arena, HD_PILOT_TEXT, &bytes, &len, diag);
	err = err ? err : hd_json_parse(&arena, path, (const char *)bytes, len, &json, diag);
	if (!err && hd_json_kind(json) != HD_JSON_OBJECT)
		err = hd_fail(diag, HD_E_INPUT, "%s: it is no object", path);
	for (size_t i = 0; i < n && !err; i++) {
		const struct hd_json *value = hd_json_find(json, members[i].key);
		err = value ? take(value, &members[i], (char *)to + members[i].at, diag) : HD_OK;
	}
	hd_arena_finish(&arena);
	return err;
}

/* ---- writing */

static void put(struct hd_json_writer *w, const struct pilot_member *m, const void *from)
{
	switch (m->kind) {
	case NUMBER: hd_json_put_i64(w, m->key, (int64_t)*(const uint64_t *)from); break;
	case SMALL: hd_json_put_i64(w, m->key, *(const uint32_t *)from); break;
	case CODE: hd_json_put_i64(w, m->key, *(const int32_t *)from); break;
	case TRUTH: hd_json_put_bool(w, m->key, *(const bool *)from); break;
	case TEXT: hd_json_put_text(w, m->key, from); break;
	case WHAT: hd_json_put_text(w, m->key, words[*(const enum hd_pilot_what *)from]); break;
	}
}

static enum hd_err write_file(struct hd_fs *fs, const char *path, const struct pilot_member *members,
	size_t n,
	const void *from, struct hd_diag *diag)
{
	char room[HD_PILOT_TEXT];
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_fixed(&text, room, sizeof room);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	for (size_t i = 0; i < n; i++)
		put(&w, &members[i], (const char *)from + members[i].at);
	hd_json_close(&w);
	hd_text_add(&text, "\n");
	return text.full ? hd_fail(diag, HD_E_INVAL, "%s: more than %d bytes", path, HD_PILOT_TEXT) :
		hd_file_write_atomic(fs, path, text.at, text.len, diag);
}

#define FILES(name, members, count) \
	enum hd_err hd_pilot_##name##_read(struct hd_pilot_##name *to, struct hd_fs *fs, const char *path, \
		struct hd_diag *diag) \
	{ \
		struct hd_pilot_##name one = { 0 }; \
		enum hd_err err = read_file(fs, path, members, count, &one, diag); \
		if (!err) \
			*to = one; \
		return err; \
	} \
	enum hd_err hd_pilot_##name##_write(const struct hd_pilot_##name *from, struct hd_fs *fs, \
		const char *path, struct hd_diag *diag) \
	{ \
		return write_file(fs, path, members, count, from, diag); \
	}
FILES(order, of_order, NORDER)
FILES(state, of_state, NSTATE)
FILES(scheduler, of_scheduler, NSCHEDULER)
#undef FILES

bool hd_pilot_is_folder(struct hd_fs *fs, const char *dir)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%.4000s/" HD_PILOT_SCHEDULER, dir);
	return !hd_fs_stat(fs, path, &stat, NULL) && stat.kind == HD_FILE_REGULAR;
}
