#define _GNU_SOURCE        /* of the C library: memmem */
#include "launch/slurm_rest.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"

enum { TASKS = 4096 };        /* of one array that wait */

const struct hd_slurm_version hd_slurm_versions[HD_SLURM_VERSIONS] = {
	{ "v0.0.43", true, true }, { "v0.0.42", true, true }, { "v0.0.41", true, true }, { "v0.0.40", true, true },
	{ "v0.0.39", true, false }, { "v0.0.38", false, false },
};

static enum hd_err strange(const char *what, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s is not understood", what);
}

/* ---- a list in an answer, item by item */

struct items { const char *at, *end; };

static const char *blank(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

/* Behind the string that begins at `at`; NULL: it does not end. */
static const char *behind_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\';
	return at < end ? at + 1 : NULL;
}

/* Behind the value that begins at `at` with a bracket; NULL: it does not end. */
static const char *behind_value(const char *at, const char *end)
{
	uint32_t depth = 0;

	while (at && at < end) {
		if (*at == '"') {
			at = behind_string(at, end);
			continue;
		}
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		at++;
		if (!depth)
			return at;
	}
	return NULL;
}

/* The list that is a member of the answer. */
static bool open_items(const char *body, size_t len, const char *key, struct items *items)
{
	const char *end = body + len, *at = blank(body, end);
	const size_t nkey = strlen(key);

	if (at == end || *at++ != '{')
		return false;
	for (;;) {
		at = blank(at, end);
		if (at == end || *at != '"')
			return false;
		const char *word = at + 1, *last = behind_string(at, end);
		at = last ? blank(last, end) : end;
		if (at == end || *at++ != ':')
			return false;
		at = blank(at, end);
		if (at < end && *at == '[' && (size_t)(last - 1 - word) == nkey && !memcmp(word, key, nkey)) {
			*items = (struct items){ .at = at + 1, .end = end };
			return true;
		}
		if (at < end && (*at == '{' || *at == '['))
			at = behind_value(at, end);
		else if (at < end && *at == '"')
			at = behind_string(at, end);
		else
			while (at < end && *at != ',' && *at != '}')
				at++;
		at = at ? blank(at, end) : end;
		if (at == end || *at++ != ',')
			return false;
	}
}

enum next { ITEM, NO_MORE, BROKEN };

static enum next next_item(struct items *items, const char **item, size_t *len)
{
	const char *at = blank(items->at, items->end);

	if (at < items->end && *at == ',')
		at = blank(at + 1, items->end);
	if (at < items->end && *at == ']')
		return NO_MORE;
	const char *last = at < items->end && *at == '{' ? behind_value(at, items->end) : NULL;
	if (!last)
		return BROKEN;
	*item = at;
	*len = (size_t)(last - at);
	items->at = last;
	return ITEM;
}

/* ---- values */

/* A number, or {set, infinite, number}. set false: there is none. false: it is something else. */
static bool take_number(const struct hd_json *object, const char *key, int64_t *n, bool *set)
{
	const struct hd_json *v = hd_json_find(object, key);
	bool is = false;

	*set = false;
	if (!v || hd_json_kind(v) == HD_JSON_NULL)
		return true;
	if (hd_json_kind(v) == HD_JSON_OBJECT) {
		if (hd_json_get_bool(v, "set", &is, NULL))
			return false;
		if (!is)
			return true;
		v = hd_json_find(v, "number");
	}
	*set = v && !hd_json_as_i64(v, 0, UINT32_MAX, n, NULL);
	return *set;
}

/* A text; "" where there is none. false: it is something else, or not printable. */
static bool take_text(const struct hd_json *object, const char *key, char *to, size_t cap)
{
	const struct hd_json *v = hd_json_find(object, key);
	const char *text = "";

	if (v && hd_json_kind(v) != HD_JSON_NULL && hd_json_as_text(v, &text, NULL))
		return false;
	return hd_slurm_word(text, strlen(text), to, cap);
}

/* A word, or a list of a state and its flags: COMPLETING goes before all, as squeue has it, else the last
 * that is known. */
static bool take_state(const struct hd_json *job, struct hd_slurm_line *l)
{
	const struct hd_json *v = hd_json_find(job, "job_state");
	const char *word = NULL;
	enum hd_slurm_stage stage;
	const bool list = v && hd_json_kind(v) == HD_JSON_ARRAY;

	for (size_t i = 0; v && i < (list ? hd_json_count(v) : 1); i++) {
		if (hd_json_as_text(list ? hd_json_item(v, i) : v, &word, NULL))
			return false;
		if (!hd_slurm_stage(word, &stage)) {
			if (!i)
				return false;
			continue;
		}
		if (strcmp(l->state, "COMPLETING") != 0) {
			snprintf(l->state, sizeof l->state, "%s", word);
			l->stage = stage;
		}
	}
	return l->state[0];
}

/* A status of wait(2), or {return_code, signal}. */
static bool take_code(const struct hd_json *job, int *code)
{
	const struct hd_json *v = hd_json_find(job, "exit_code");
	const struct hd_json *signal = v ? hd_json_find(v, "signal") : NULL;
	int64_t n = 0;
	bool set;

	*code = 0;
	if (!v || !hd_json_find(v, "return_code")) {
		if (!take_number(job, "exit_code", &n, &set))
			return false;
		*code = set ? hd_slurm_code((uint64_t)n) : 0;
		return true;
	}
	if (signal && (!take_number(signal, hd_json_find(signal, "id") ? "id" : "signal_id", &n, &set) ||
		(set && n > 127)))
		return false;
	if (signal && set && n) {
		*code = 128 + (int)n;
		return true;
	}
	if (!take_number(v, "return_code", &n, &set) || (set && n > 255))
		return false;
	*code = set ? (int)n : 0;
	return true;
}

/* ---- jobs */

struct rest_lines { struct hd_slurm_line *at; uint32_t n, cap; struct hd_arena *arena; };

static enum hd_err put_line(struct rest_lines *to, const struct hd_slurm_line *line, struct hd_diag *diag)
{
	if (to->n == to->cap) {
		const uint32_t cap = to->cap ? 2 * to->cap : 16;
		struct hd_slurm_line *at = hd_arena_take(to->arena, cap, sizeof *at);
		if (!at)
			return hd_fail(diag, HD_E_NOMEM, "no memory for jobs");
		if (to->n)
			memcpy(at, to->at, to->n * sizeof *at);
		to->at = at;
		to->cap = cap;
	}
	to->at[to->n++] = *line;
	return HD_OK;
}

/* Digits up to a character that is none. */
static bool take_digits(const char **at, uint64_t *n)
{
	const size_t len = strspn(*at, "0123456789");
	char digits[12];

	if (!len || len >= sizeof digits)
		return false;
	snprintf(digits, sizeof digits, "%.*s", (int)len, *at);
	*at += len;
	return !hd_num_u64(digits, UINT32_MAX, n, NULL);
}

/* "0,3-5,8-12:2%4": a line each of the tasks of an array that wait. */
static enum hd_err put_tasks(struct rest_lines *to, struct hd_slurm_line *line, int64_t array,
	const char *tasks,
	struct hd_diag *diag)
{
	const char *at = tasks;
	uint32_t n = 0;
	enum hd_err err = HD_OK;

	do {
		uint64_t first = 0, last = 0, step = 1;
		if (!take_digits(&at, &first))
			return strange("which tasks of an array wait", diag);
		last = first;
		if (*at == '-' && (at++, !take_digits(&at, &last)))
			return strange("which tasks of an array wait", diag);
		if (*at == ':' && (at++, !take_digits(&at, &step) || !step))
			return strange("which tasks of an array wait", diag);
		for (uint64_t i = first; i <= last && !err; i += step) {
			if (n++ == TASKS)
				return strange("which tasks of an array wait", diag);
			snprintf(line->id, sizeof line->id, "%lld_%llu", (long long)array,
				(unsigned long long)i);
			err = put_line(to, line, diag);
		}
	} while (!err && *at == ',' && at++);
	return err || !*at || *at == '%' ? err : strange("which tasks of an array wait", diag);
}

static enum hd_err put_job(struct rest_lines *to, const struct hd_json *job, struct hd_diag *diag)
{
	struct hd_slurm_line l = { .id = "" };
	int64_t id = 0, array = 0, task = 0, restarts = 0;
	bool has_id, has_array, has_task, has_restarts;
	char tasks[4096];

	if (!take_number(job, "job_id", &id, &has_id) || !has_id ||
		!take_number(job, "array_job_id", &array, &has_array) ||
		!take_number(job, "array_task_id", &task, &has_task) ||
		!take_text(job, "array_task_string", tasks, sizeof tasks))
		return strange("a job's number", diag);
	if (!take_state(job, &l))
		return strange("a job's state", diag);
	if (!take_code(job, &l.code) || !take_number(job, "restart_cnt", &restarts, &has_restarts) ||
		!take_text(job, "nodes", l.node, sizeof l.node) ||
		!take_text(job, "state_reason", l.reason, sizeof l.reason))
		return strange("what a job did", diag);
	l.restarts = has_restarts ? (uint32_t)restarts : 0;
	if (!strcmp(l.reason, "None"))
		l.reason[0] = '\0';
	if (has_array && array && !has_task && *tasks)
		return put_tasks(to, &l, array, tasks, diag);
	if (has_array && array && has_task)
		snprintf(l.id, sizeof l.id, "%lld_%lld", (long long)array, (long long)task);
	else
		snprintf(l.id, sizeof l.id, "%lld", (long long)id);
	return put_line(to, &l, diag);
}

enum hd_err hd_slurm_rest_jobs(const char *body, size_t len, const char *name, struct hd_arena *arena,
	struct hd_slurm_lines *lines, struct hd_diag *diag)
{
	struct rest_lines to = { .arena = arena };
	const char *item = NULL, *is = NULL;
	struct items items;
	size_t n = 0;
	enum next next;

	if (!open_items(body, len, "jobs", &items))
		return strange("its list of jobs", diag);
	while ((next = next_item(&items, &item, &n)) == ITEM) {
		const struct hd_json *job;
		if (!memmem(item, n, name, strlen(name)))
			continue;
		enum hd_err err = hd_json_parse(arena, "a job", item, n, &job, diag);
		if (!err && (hd_json_get_text(job, "name", &is, NULL) || strcmp(is, name) != 0))
			continue;
		err = err ? err : put_job(&to, job, diag);
		if (err)
			return err;
	}
	if (next == BROKEN)
		return strange("its list of jobs", diag);
	*lines = (struct hd_slurm_lines){ .at = to.at, .n = to.n };
	return HD_OK;
}

/* ---- nodes */

static bool has_word(const struct hd_json *list, const char *word)
{
	const char *is = "";

	for (size_t i = 0; list && i < hd_json_count(list); i++)
		if (!hd_json_as_text(hd_json_item(list, i), &is, NULL) && !strcmp(is, word))
			return true;
	return false;
}

/* A text, or a list of them with commas between. */
static bool take_words(const struct hd_json *object, const char *key, char *to, size_t cap)
{
	const struct hd_json *v = hd_json_find(object, key);
	const char *word = "";
	struct hd_text text;

	if (!v || hd_json_kind(v) != HD_JSON_ARRAY)
		return take_text(object, key, to, cap);
	hd_text_fixed(&text, to, cap);
	to[0] = '\0';
	for (size_t i = 0; i < hd_json_count(v); i++) {
		if (hd_json_as_text(hd_json_item(v, i), &word, NULL))
			return false;
		hd_text_addf(&text, "%s%s", i ? "," : "", word);
	}
	return hd_slurm_word(to, strlen(to), to, cap);
}

static bool take_node(const struct hd_json *node, struct hd_batch_node *to)
{
	char gres[256], features[512];

	if (!take_text(node, "name", to->name, sizeof to->name) || !to->name[0] ||
		!take_text(node, "address", to->address, sizeof to->address) ||
		!take_words(node, "state", to->state, sizeof to->state) || !to->state[0] ||
		!take_text(node, "gres", gres, sizeof gres) ||
		!take_words(node, "features", features, sizeof features))
		return false;
	hd_slurm_type_of(gres, features, &to->type);
	return true;
}

enum hd_err hd_slurm_rest_nodes(const char *body, size_t len, const char *partition, const char *usual_of,
	struct hd_arena *arena, struct hd_batch_nodes *nodes, struct hd_diag *diag)
{
	const struct hd_json *answer, *list;
	enum hd_err err = hd_json_parse(arena, "slurmrestd", body, len, &answer, diag);

	err = err ? err : hd_json_get(answer, "nodes", HD_JSON_ARRAY, &list, diag);
	if (err)
		return err;
	struct hd_batch_node *at = hd_arena_take(arena, hd_json_count(list) + 1, sizeof *at);
	uint32_t n = 0;
	if (!at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for nodes");
	for (size_t i = 0; i < hd_json_count(list); i++) {
		const struct hd_json *node = hd_json_item(list, i), *of = hd_json_find(node, "partitions");
		if (*partition && !has_word(of, partition))
			continue;
		if (!take_node(node, &at[n]))
			return strange("a node", diag);
		at[n++].usual = !*usual_of || has_word(of, usual_of);
	}
	*nodes = (struct hd_batch_nodes){ .at = at, .n = n };
	return HD_OK;
}

enum hd_err hd_slurm_rest_usual(const char *body, size_t len, struct hd_arena *arena, const char **name,
	struct hd_diag *diag)
{
	const struct hd_json *answer, *list;
	enum hd_err err = hd_json_parse(arena, "slurmrestd", body, len, &answer, diag);

	err = err ? err : hd_json_get(answer, "partitions", HD_JSON_ARRAY, &list, diag);
	*name = "";
	for (size_t i = 0; !err && i < hd_json_count(list); i++) {
		const struct hd_json *one = hd_json_item(list, i), *flags = hd_json_find(one, "flags");
		if (has_word(flags, "default") || has_word(flags, "DEFAULT"))
			err = hd_json_get_text(one, "name", name, diag);
	}
	return err;
}

/* ---- what went wrong, and what was submitted */

/* Slurm calls them ESLURM_JOB_NOT_PENDING, ESLURM_INVALID_JOB_ID, ESLURM_ALREADY_DONE. */
static enum hd_slurm_error kind_of(int64_t code)
{
	static const struct { int64_t code; enum hd_slurm_error error; } codes[] = {
		{ 2073, HD_SLURM_HAS_BEGUN }, { 2017, HD_SLURM_IS_OVER }, { 2021, HD_SLURM_IS_OVER },
	};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].code == code)
			return codes[i].error;
	return HD_SLURM_ERROR;
}

/* It may be negative; 0: there is none. */
static int64_t number_of_error(const struct hd_json *one)
{
	static const char *const keys[] = { "error_number", "error_code" };
	int64_t n = 0;

	for (size_t i = 0; i < sizeof keys / sizeof *keys && !n; i++) {
		const struct hd_json *v = hd_json_find(one, keys[i]);
		if (v && hd_json_as_i64(v, INT32_MIN, UINT32_MAX, &n, NULL))
			n = 0;
	}
	return n;
}

/* The first that has a number. One without is none: of a task of an array slurmrestd 22.05 says that its
 * update failed, without a number, where it was done. */
static void take_errors(const struct hd_json *list, enum hd_slurm_error *error, const char **text)
{
	for (size_t i = 0; list && i < hd_json_count(list); i++) {
		const struct hd_json *one = hd_json_item(list, i);
		const char *says = "";
		const int64_t code = hd_json_kind(one) == HD_JSON_OBJECT ? number_of_error(one) : 0;
		if (!code || *error != HD_SLURM_NO_ERROR)
			continue;
		if (hd_json_get_text(one, "error", &says, NULL) || !*says)
			(void)!hd_json_get_text(one, "description", &says, NULL);
		*error = kind_of(code);
		*text = *says ? says : "it failed without a word";
	}
}

enum hd_err hd_slurm_rest_error(const char *body, size_t len, struct hd_arena *arena,
	enum hd_slurm_error *error, const char **text, struct hd_diag *diag)
{
	const struct hd_json *answer;
	enum hd_err err = hd_json_parse(arena, "slurmrestd", body, len, &answer, diag);

	if (err)
		return err;
	*error = HD_SLURM_NO_ERROR;
	*text = "";
	take_errors(hd_json_find(answer, "errors"), error, text);
	take_errors(hd_json_find(answer, "results"), error, text);
	return HD_OK;
}

enum hd_err hd_slurm_rest_id(const char *body, size_t len, struct hd_arena *arena, char id[HD_SLURM_ID],
	struct hd_diag *diag)
{
	const struct hd_json *answer;
	int64_t n = 0;
	bool set;
	enum hd_err err = hd_json_parse(arena, "slurmrestd", body, len, &answer, diag);

	if (err)
		return err;
	if (!take_number(answer, "job_id", &n, &set) || !set || !n)
		return strange("the number of the job", diag);
	snprintf(id, HD_SLURM_ID, "%lld", (long long)n);
	return HD_OK;
}
