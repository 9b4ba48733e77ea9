#define _GNU_SOURCE
#include "chaos/machine_script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/philox.h"
#include "chaos/machine_check.h"

static const double EC2_LEAD_S = 120;

enum hd_err hd_machine_notice_read(struct hd_machine_notice *notice, const char *text, struct hd_diag *diag)
{
	static const struct { const char *word; enum hd_metadata_cloud cloud; double most; } row[] = {
		{ "ec2:", HD_CLOUD_EC2, 1e6 }, { "gce:", HD_CLOUD_GCE, 1e6 }, { "azure:", HD_CLOUD_AZURE, 1e6 },
		{ "p:", HD_CLOUD_EC2, 1 },
	};
	struct hd_diag why = { "" };
	double x = 0;

	if (!strcmp(text, "none")) {
		*notice = (struct hd_machine_notice){ .cloud = HD_CLOUD_EC2 };
		return HD_OK;
	}
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const size_t len = strlen(row[i].word);
		if (strncmp(text, row[i].word, len) != 0)
			continue;
		if (hd_num_f64(text + len, 0, row[i].most, &x, &why))
			return hd_fail(diag, HD_E_INVAL, "--notice %.40s: %s", text, why.text);
		*notice = (struct hd_machine_notice){ row[i].cloud, row[i].most > 1 ? x : EC2_LEAD_S,
			row[i].most > 1 ? 1 : x };
		return HD_OK;
	}
	return hd_fail(diag, HD_E_INVAL,
		"--notice %.40s: it is none, ec2:SECONDS, gce:SECONDS, azure:SECONDS, or p:SHARE of the "
		"removals",
		text);
}

/* Of events of a trace at one time: those that add, notices, kills. A script's stay as they are; of those
 * `line` says where they stand. */
struct sorting { struct hd_metadata_event *at; const size_t *line; const char *file; };

static int rank_of(const struct sorting *s, size_t i)
{
	const enum hd_metadata_do what = s->at[i].what;

	return s->line ? 0 : what == HD_METADATA_ADD ? 1 : what == HD_METADATA_NOTICE ? 2 : 3;
}

static int by_time(const void *a, const void *b, void *sorting)
{
	const struct sorting *s = sorting;
	const size_t i = *(const size_t *)a, k = *(const size_t *)b;

	if (s->at[i].at_ns != s->at[k].at_ns)
		return s->at[i].at_ns < s->at[k].at_ns ? -1 : 1;
	if (rank_of(s, i) != rank_of(s, k))
		return rank_of(s, i) < rank_of(s, k) ? -1 : 1;
	return (i > k) - (i < k);
}

static enum hd_err in_order(struct hd_machine_script *script, const struct sorting *s, size_t n,
	struct hd_arena *arena, struct hd_diag *diag)
{
	size_t *order = hd_arena_take(arena, n + 1, sizeof *order), *line = NULL;

	script->n = n;
	script->at = hd_arena_take(arena, n + 1, sizeof *script->at);
	if (s->line)
		line = hd_arena_take(arena, n + 1, sizeof *line);
	if (!order || !script->at || (s->line && !line))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %zu events of machines", n);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	if (n)
		qsort_r(order, n, sizeof *order, by_time, (void *)(uintptr_t)s);
	for (size_t i = 0; i < n; i++) {
		script->at[i] = s->at[order[i]];
		if (line)
			line[i] = s->line[order[i]];
	}
	return hd_machine_script_check(script, s->file, line, arena, diag);
}

static bool is_announced(const struct hd_machine_notice *notice, uint64_t seed, uint32_t node)
{
	const uint32_t counter[4] = { HD_RNG_CLUSTER_SPOT, node, 0, 1 };
	const struct hd_philox x = hd_philox(counter, hd_philox_key(seed, HD_RNG_CLUSTER));

	return (double)x.word[0] < notice->share * 4294967296.0;
}

static bool is_name(const char *given)
{
	const size_t len = strlen(given);

	return len && len < HD_METADATA_NAME && strspn(given, "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

typedef char machine_name[HD_METADATA_NAME];

/* A name of a script for each machine: its own, or by its number one that no other has. NULL: no memory. */
static machine_name *name_machines(const struct hd_spot_trace *trace, struct hd_arena *arena)
{
	machine_name *name = hd_arena_take(arena, (size_t)trace->nnodes + 1, sizeof *name);
	const char **given = hd_arena_take(arena, (size_t)trace->nnodes + 1, sizeof *given);
	size_t n = 0;

	if (!name || !given)
		return NULL;
	for (uint32_t i = 0; i < trace->nnodes; i++)
		if (is_name(trace->name[i]))
			given[n++] = trace->name[i];
	qsort(given, n, sizeof *given, by_text);
	for (uint32_t i = 0; i < trace->nnodes; i++) {
		const char *at = name[i];
		if (is_name(trace->name[i])) {
			memcpy(name[i], trace->name[i], strlen(trace->name[i]) + 1);
			continue;
		}
		(void)snprintf(name[i], sizeof *name, "m%u", i + 1);
		for (unsigned k = 2; bsearch(&at, given, n, sizeof *given, by_text); k++)
			(void)snprintf(name[i], sizeof *name, "m%u-%u", i + 1, k);
	}
	return name;
}

enum hd_err hd_machine_script_of(struct hd_machine_script *script, const struct hd_spot_trace *trace,
	const char *file, double speed, const struct hd_machine_notice *notice, uint64_t seed,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_metadata_event *at = hd_arena_take(arena, 2 * trace->n + 1, sizeof *at);
	int64_t *came_ns = hd_arena_take(arena, (size_t)trace->nnodes + 1, sizeof *came_ns);
	machine_name *name = name_machines(trace, arena);
	size_t n = 0;

	if (!at || !came_ns || !name)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %zu events of machines", trace->n);
	for (size_t i = 0; i < trace->n; i++) {
		const struct hd_spot_event *e = &trace->at[i];
		if ((double)e->at_ms / speed > (double)HD_MACHINE_MS_MOST)
			return hd_fail(diag, HD_E_INPUT,
				"%s: %s %s at %" PRId64 " ms, more than %" PRId64 " s from the begin as it "
				"is played; give a shorter part, or a higher --speed", file, name[e->node],
				e->added ? "comes" : "goes", e->at_ms, HD_MACHINE_MS_MOST / 1000);
		const int64_t at_ns = (int64_t)((double)e->at_ms * 1e6 / speed),
			lead_ns = (int64_t)(notice->lead_s * 1e9 / speed);
		struct hd_metadata_event made = { .at_ns = at_ns, .cloud = notice->cloud,
			.action = "terminate", .what = e->added ? HD_METADATA_ADD : HD_METADATA_KILL };
		memcpy(made.node, name[e->node], sizeof made.node);
		if (e->added)
			came_ns[e->node] = at_ns;
		at[n++] = made;
		if (e->added || !is_announced(notice, seed, e->node))
			continue;
		made.what = HD_METADATA_NOTICE;
		made.at_ns = at_ns - lead_ns > came_ns[e->node] ? at_ns - lead_ns : came_ns[e->node];
		made.lead_ns = at_ns - made.at_ns;
		at[n++] = made;
	}
	return in_order(script, &(struct sorting){ .at = at, .file = file }, n, arena, diag);
}

enum hd_err hd_machine_script_read(struct hd_machine_script *script, const char *name, const char *text,
	size_t len, double speed, struct hd_arena *arena, struct hd_diag *diag)
{
	size_t lines = 1, n = 0, line = 0;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	struct hd_metadata_event *at = hd_arena_take(arena, lines, sizeof *at);
	size_t *where = hd_arena_take(arena, lines, sizeof *where);
	if (!at || !where)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %zu events of machines", lines);
	for (const char *end; len; len -= (size_t)(end - text), text = end) {
		struct hd_diag why = { "" };
		const char *nl = memchr(text, '\n', len);
		const size_t n_line = nl ? (size_t)(nl - text) : len;
		end = text + n_line + (nl != NULL);
		line++;
		if (!n_line)
			continue;
		enum hd_err err = hd_metadata_read(text, n_line, &at[n], &why);
		if (err)
			return hd_fail(diag, err, "%s:%zu: %s", name, line, why.text);
		at[n].at_ns = (int64_t)((double)at[n].at_ns / speed);
		at[n].late_ns = (int64_t)((double)at[n].late_ns / speed);
		if (at[n].lead_ns > 0)
			at[n].lead_ns = (int64_t)((double)at[n].lead_ns / speed);
		where[n++] = line;
	}
	return in_order(script, &(struct sorting){ at, where, name }, n, arena, diag);
}
