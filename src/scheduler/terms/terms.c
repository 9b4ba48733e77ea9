#include "scheduler/terms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
#define X(id, name) [HD_AFTER_##id] = name,
	HD_AFTERS(X)
#undef X
};
static const char *const nows[] = {
#define X(id, name) [HD_AFTER_##id] = name,
	HD_AFTER_NOWS(X)
#undef X
};

const char *hd_after_name(enum hd_after_kind kind) { return kinds[kind]; }

/* Which of the names begins the text and ends at `len`; n: none. */
static uint32_t named(const char *const *names, uint32_t n, const char *text, size_t len)
{
	uint32_t k = 0;

	while (k < n && (strlen(names[k]) != len || memcmp(names[k], text, len) != 0))
		k++;
	return k;
}

bool hd_after_kind_of(const char *name, enum hd_after_kind *kind)
{
	uint32_t k = named(kinds, HD_AFTER_NKINDS, name, strlen(name));

	if (k < HD_AFTER_NKINDS)
		*kind = (enum hd_after_kind)k;
	return k < HD_AFTER_NKINDS;
}

/* One task that is not done decides; else the last one does. */
enum hd_after_now hd_after_judge(enum hd_after_kind kind, bool done, bool last)
{
	if (!last && (done || kind == HD_AFTER_ANY))
		return HD_AFTER_WAITS;
	return kind == HD_AFTER_ANY || (kind == HD_AFTER_OK) == done ? HD_AFTER_MET : HD_AFTER_BROKEN;
}

void hd_terms_put_after(const struct hd_job_terms *terms, char *text)
{
	struct hd_text t;

	hd_text_fixed(&t, text, HD_TERMS_TEXT);
	hd_text_add(&t, "");
	for (uint32_t i = 0; i < terms->nafter; i++)
		hd_text_addf(&t, "%s%" PRIu64 ":%s:%s", i ? " " : "", terms->after[i].job,
			kinds[terms->after[i].kind], nows[terms->after[i].now]);
}

/* Digits alone, without a sign or a blank; false: none, or above `most`. */
static bool number(const char **at, uint64_t most, uint64_t *value)
{
	uint64_t v = 0;
	const char *c = *at;

	for (; *c >= '0' && *c <= '9'; c++) {
		v = v * 10 + (uint64_t)(*c - '0');
		if (v > most || c - *at > 18)
			return false;
	}
	if (c == *at)
		return false;
	*at = c;
	*value = v;
	return true;
}

enum hd_err hd_terms_get_after(struct hd_job_terms *terms, const char *text, struct hd_diag *diag)
{
	uint32_t n = 0;

	for (const char *at = text; *at; n++) {
		struct hd_after after = { 0 };
		bool good = n < HD_TERMS_AFTER && number(&at, INT64_MAX, &after.job) && after.job && *at++
			== ':';
		size_t len = good ? strcspn(at, ": ") : 0;
		uint32_t kind = named(kinds, HD_AFTER_NKINDS, at, len);
		good &= kind < HD_AFTER_NKINDS && at[len] == ':';
		at += good ? len + 1 : 0;
		len = good ? strcspn(at, " ") : 0;
		uint32_t now = named(nows, HD_AFTER_NNOWS, at, len);
		if (!good || now == HD_AFTER_NNOWS || (at[len] == ' ' && !at[len + 1]))
			return hd_fail(diag, HD_E_INPUT, "\"%.80s\" does not say after which jobs one "
				"runs", text);
		at += len + (at[len] == ' ');
		after.kind = (enum hd_after_kind)kind;
		after.now = (enum hd_after_now)now;
		terms->after[n] = after;
	}
	terms->nafter = n;
	return HD_OK;
}

/* ---- arrays ---- */

static enum hd_err no_array(const char *text, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL, "array \"%.60s\": indices as 0-9 or 0-3,8,12-20, ascending, at "
		"most %d of "
		"them up to %d, and %%K behind them for K at once", text, HD_TERMS_TASKS, HD_TERMS_INDEX);
}

enum hd_err hd_tasks_read(struct hd_tasks *tasks, const char *text, struct hd_diag *diag)
{
	const char *at = text;
	uint64_t first = 0, last = 0, next = 0, most = 0;

	tasks->n = 0;
	do {
		bool good = number(&at, HD_TERMS_INDEX, &first);
		last = first;
		if (good && *at == '-') {
			at++;
			good = number(&at, HD_TERMS_INDEX, &last);
		}
		if (!good || first < next || last < first || last - first >= HD_TERMS_TASKS - tasks->n)
			return no_array(text, diag);
		next = last + 1;
		for (uint64_t i = first; i <= last; i++)
			tasks->index[tasks->n++] = (uint32_t)i;
	} while (*at == ',' && *++at);
	bool good = at[-1] != ',';
	if (good && *at == '%') {
		at++;
		good = number(&at, HD_TERMS_TASKS, &most) && most;
	}
	tasks->at_once = (uint32_t)most;
	return good && !*at ? HD_OK : no_array(text, diag);
}

void hd_tasks_put(const char *text, uint32_t index, struct hd_text *to)
{
	static const char mark[] = "{index}";

	for (const char *next; (next = strstr(text, mark)); text = next + strlen(mark)) {
		hd_text_put(to, text, (size_t)(next - text));
		hd_text_addf(to, "%u", index);
	}
	hd_text_add(to, text);
}
