#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "clustersim/io/sacct.h"

/* `sacct --json`: an object with a list "jobs", of which each is parsed by itself, as the whole may be
 * longer than a JSON text may be here. A number is a number, or {"set", "infinite", "number"} (data_parser
 * from v0.0.39 on); a state is a word or a list of words. What a job says becomes a row of the fields that
 * --parsable has, parted by a byte that no text holds. */

enum { SEP = 0x1f };
static const char header[] = "JobID\x1fJobName\x1fUser\x1f"
	"Account\x1fPartition\x1fQOS\x1fSubmit\x1fStart\x1f"
	"End\x1fState\x1fTimelimitRaw\x1f" "ElapsedRaw\x1fReqTRES\x1f" "AllocTRES\n";

bool hd_job_list_json_is(const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", bytes[at]) && bytes[at])
		at++;
	return at < len && bytes[at] == '{';
}

static const struct hd_json *at_path(const struct hd_json *of, const char *a, const char *b)
{
	of = of ? hd_json_find(of, a) : NULL;
	return of && b ? hd_json_find(of, b) : of;
}

/* NAN: not said; INFINITY: without end. */
static double number_of(const struct hd_json *json)
{
	bool set = true, infinite = false;
	double x = NAN;

	if (!json)
		return NAN;
	if (hd_json_kind(json) == HD_JSON_OBJECT) {
		if (hd_json_find(json, "set") && hd_json_get_bool(json, "set", &set, NULL))
			return NAN;
		if (hd_json_find(json, "infinite") && hd_json_get_bool(json, "infinite", &infinite, NULL))
			return NAN;
		if (infinite)
			return INFINITY;
		return !set || hd_json_get_f64(json, "number", &x, NULL) ? NAN : x;
	}
	return hd_json_as_f64(json, &x, NULL) ? NAN : x;
}

/* "" where it is none; of a list its first. */
static const char *text_of(const struct hd_json *json)
{
	const char *text = "";

	if (json && hd_json_kind(json) == HD_JSON_ARRAY)
		json = hd_json_count(json) ? hd_json_item(json, 0) : NULL;
	return json && !hd_json_as_text(json, &text, NULL) ? text : "";
}

/* A control character of a name would end the row, or hide in a terminal. */
static void put(struct hd_text *to, const char *text)
{
	for (; *text; text++)
		hd_text_addf(to, "%c", (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
	hd_text_addf(to, "%c", SEP);
}

static void put_seconds(struct hd_text *to, double s)
{
	if (s > 0 && isfinite(s))
		hd_text_addf(to, "%.17g", s);
	hd_text_addf(to, "%c", SEP);
}

/* [{"type": "gres", "name": "gpu:a100", "count": 2}] as "gres/gpu:a100=2". */
static void put_tres(struct hd_text *to, const struct hd_json *list, char after)
{
	for (size_t i = 0; list && i < hd_json_count(list); i++) {
		const struct hd_json *item = hd_json_item(list, i);
		double n = number_of(hd_json_find(item, "count"));
		const char *name = text_of(hd_json_find(item, "name"));
		if (strcmp(text_of(hd_json_find(item, "type")), "gres") != 0 || strpbrk(name, ",=\x1f\n\r") ||
			!(n >= 0 && n <= 1e9))
			continue;
		hd_text_addf(to, "gres/%s=%.0f,", name, n);
	}
	hd_text_addf(to, "%c", after);
}

static void put_id(struct hd_text *to, const struct hd_json *job)
{
	double array = number_of(at_path(job, "array", "job_id")), task = number_of(at_path(job, "array",
		"task_id")),
		het = number_of(at_path(job, "het", "job_id")), part = number_of(at_path(job, "het",
			"job_offset")),
		id = number_of(hd_json_find(job, "job_id"));

	if (array > 0 && isfinite(task))
		hd_text_addf(to, "%.0f_%.0f", array, task);
	else if (het > 0 && isfinite(part))
		hd_text_addf(to, "%.0f+%.0f", het, part);
	else if (isfinite(id))
		hd_text_addf(to, "%.0f", id);
	hd_text_addf(to, "%c", SEP);
}

static void put_job(struct hd_text *to, const struct hd_json *job)
{
	const struct hd_json *time = hd_json_find(job, "time"), *state = at_path(job, "state", "current");
	double limit = number_of(at_path(time, "limit", NULL)), took = number_of(at_path(time, "elapsed",
		NULL));

	put_id(to, job);
	put(to, text_of(hd_json_find(job, "name")));
	put(to, text_of(hd_json_find(job, "user") ? hd_json_find(job, "user") :
		at_path(job, "association", "user")));
	put(to, text_of(hd_json_find(job, "account")));
	put(to, text_of(hd_json_find(job, "partition")));
	put(to, text_of(hd_json_find(job, "qos")));
	put_seconds(to, number_of(at_path(time, "submission", NULL)));
	put_seconds(to, number_of(at_path(time, "start", NULL)));
	put_seconds(to, number_of(at_path(time, "end", NULL)));
	put(to, text_of(state));
	if (isinf(limit))
		hd_text_add(to, "UNLIMITED");
	else if (!isnan(limit))
		hd_text_addf(to, "%.0f", limit);
	hd_text_addf(to, "%c", SEP);
	if (isfinite(took))
		hd_text_addf(to, "%.0f", took);
	hd_text_addf(to, "%c", SEP);
	put_tres(to, at_path(job, "tres", "requested"), SEP);
	put_tres(to, at_path(job, "tres", "allocated"), '\n');
}

/* ---- the list of jobs in the file ---- */

struct slicer {
	const char *at, *end;
	uint64_t line;
	int depth;
	bool in_jobs;                             /* at depth 2 and below: of the member "jobs" */
};

/* Behind the string that begins here. */
static const char *skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\' && at + 1 < end;
	return at < end ? at + 1 : end;
}

/* The next object of the list "jobs"; false: there is none. What is wrong in it says the parser. */
static bool next_job(struct slicer *s, const char **job, size_t *len, uint64_t *line)
{
	const char *from = NULL;

	while (s->at < s->end) {
		const char c = *s->at, *was = s->at;
		s->at = c == '"' ? skip_string(s->at, s->end) : s->at + 1;
		if (c == '"' && s->depth == 1)
			s->in_jobs = s->at - was == 6 && !memcmp(was, "\"jobs\"", 6);
		s->line += c == '\n';
		if (c == '{' && s->depth == 2 && s->in_jobs) {
			from = was;
			*line = s->line;
		}
		s->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		if (from && s->depth == 2) {
			*job = from;
			*len = (size_t)(s->at - from);
			return true;
		}
	}
	*job = from;
	*len = from ? (size_t)(s->end - from) : 0;
	return from != NULL;
}

static enum hd_err put_jobs(struct hd_text *rows, const char *name, struct slicer *s, struct hd_diag *diag)
{
	const char *text;
	size_t len;
	uint64_t line = 0, njobs = 0;
	enum hd_err err = HD_OK;
	struct hd_arena one;

	hd_arena_init(&one, 256u << 20);
	while (!err && next_job(s, &text, &len, &line)) {
		const struct hd_json *job;
		struct hd_diag why = { "" };
		if (!(err = hd_json_parse(&one, "job", text, len, &job, &why)))
			put_job(rows, job);
		else
			hd_fail(diag, err, "%s: the job that begins in line %llu: %s", name,
				(unsigned long long)line, why.text);
		hd_arena_reset(&one);
		njobs++;
	}
	hd_arena_finish(&one);
	if (!err && !njobs)
		return hd_fail(diag, HD_E_INPUT,
			"%s: it is JSON without a list \"jobs\" that holds any: write it with sacct --json",
				name);
	return err;
}

enum hd_err hd_job_list_json(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t len,
	const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag)
{
	struct slicer s = { .at = (const char *)bytes, .end = (const char *)bytes + len, .line = 1 };
	struct hd_text rows;
	char as_rows[300];

	hd_text_init(&rows, arena);
	hd_text_add(&rows, header);
	enum hd_err err = put_jobs(&rows, name, &s, diag);
	if (err)
		return err;
	if (rows.full)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", name);
	(void)snprintf(as_rows, sizeof as_rows, "%.250s (as rows, header first)", name);
	return sacct_rows(list, as_rows, (const uint8_t *)rows.at, rows.len, SEP, how, arena, diag);
}
