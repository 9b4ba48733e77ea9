#include "clustersim/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool separates(char c) { return c && strchr("-_.:=#@/ ", c); }

/* Without a word of a repetition and the separator before it. */
static size_t strip_word(const char *name, size_t len)
{
	static const char *const words[] = { "seed", "run", "trial", "rep", "fold" };

	for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
		size_t n = strlen(words[k]);
		if (len > n && !strncasecmp(name + len - n, words[k], n) && separates(name[len - n - 1]))
			return len - n - 1;
	}
	return len;
}

size_t hd_measured_name(const char *name)
{
	size_t len = strlen(name);

	for (size_t at = len; at; len = at) {
		while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
			at--;
		if (at == len)
			break;
		size_t bare = at && separates(name[at - 1]) ? at - 1 : at;
		size_t word = strip_word(name, bare);
		if (!word || (word == at && bare == at))      /* digits that are part of a word, or all
			there is */
			break;
		at = word;
	}
	return len;
}

struct one { const char *user, *name; size_t len; uint32_t scale, type; double log_s; };

static int by_likeness(const void *a, const void *b)
{
	const struct one *x = a, *y = b;
	int by = strcmp(x->user, y->user);

	if (!by)
		by = strncmp(x->name, y->name, x->len < y->len ? x->len : y->len);
	if (!by)
		by = (x->len > y->len) - (x->len < y->len);
	return by ? by : (x->scale > y->scale) - (x->scale < y->scale);
}

/* Of pairs of types t < u: sums over groups. diff is log(speed of t / speed of u). */
struct pairs { double weight, diff, square, low, high; uint64_t n; };

struct measuring { struct pairs *pair; uint32_t ntypes; };

static struct pairs *pair_of(const struct measuring *m, uint32_t t, uint32_t u) { return &m->pair[(size_t)t *
	m->ntypes + u]; }

static void add_pair(struct measuring *m, uint32_t t, uint32_t u, double diff, double weight)
{
	struct pairs *p = pair_of(m, t, u);

	p->low = p->n ? fmin(p->low, diff) : diff;
	p->high = p->n ? fmax(p->high, diff) : diff;
	p->weight += weight;
	p->diff += weight * diff;
	p->square += weight * diff * diff;
	p->n++;
}

static void add_group(struct measuring *m, struct hd_measured *out, const struct one *job, size_t n)
{
	double sum[HD_SCHED_TYPES] = { 0 };
	uint64_t count[HD_SCHED_TYPES] = { 0 };
	uint32_t several = 0;

	for (size_t i = 0; i < n; i++) {
		several += !count[job[i].type]++;
		sum[job[i].type] += job[i].log_s;
	}
	for (uint32_t t = 0; t < m->ntypes && several > 1; t++) {
		out->of[t].njobs += count[t];
		for (uint32_t u = 0; u < m->ntypes; u++) {
			if (t == u || !count[t] || !count[u])
				continue;
			double x = (double)count[t], y = (double)count[u];
			add_pair(m, t, u, sum[u] / y - sum[t] / x, 1 / (1 / x + 1 / y));
		}
	}
}

static void eliminate(double a[HD_SCHED_TYPES][HD_SCHED_TYPES + 1], uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; i < n; i++) {
			double by = i == k ? 0 : a[i][k] / a[k][k];
			for (uint32_t j = k; j <= n && by < 0; j++)       /* none is above 0 beside the
				diagonal */
				a[i][j] -= by * a[k][j];
		}
}

/* Types that chains of pairs tie to the reference. */
static void reach(const struct measuring *m, uint32_t reference, bool known[HD_SCHED_TYPES])
{
	known[reference] = true;
	for (bool more = true; more;) {
		more = false;
		for (uint32_t t = 0; t < m->ntypes; t++)
			for (uint32_t u = 0; u < m->ntypes && !known[t]; u++)
				more |= known[t] = known[u] && pair_of(m, t, u)->n;
	}
}

/* Normal equations: for each type t, sum over u of w (x_t - x_u - d) is 0; x of the reference is 0. */
static void solve(const struct measuring *m, struct hd_measured *out)
{
	double a[HD_SCHED_TYPES][HD_SCHED_TYPES + 1] = { { 0 } };
	bool known[HD_SCHED_TYPES] = { false };
	const uint32_t n = m->ntypes;

	reach(m, out->reference, known);
	for (uint32_t t = 0; t < n; t++) {
		const bool asked = known[t] && t != out->reference;
		a[t][t] = !asked;
		for (uint32_t u = 0; u < n && asked; u++) {
			const struct pairs *p = pair_of(m, t, u);
			a[t][t] += p->weight;
			a[t][u] -= u == out->reference ? 0 : p->weight;
			a[t][n] += p->diff;
		}
	}
	eliminate(a, n);
	for (uint32_t t = 0; t < n; t++)
		out->of[t].speed = known[t] ? exp(a[t][n] / a[t][t]) : NAN;
}

static void describe(const struct measuring *m, struct hd_measured *out)
{
	for (uint32_t t = 0; t < m->ntypes; t++) {
		const struct pairs *p = pair_of(m, t, out->reference);
		out->of[t].npairs = p->n;
		out->of[t].low = exp(p->low);
		out->of[t].high = exp(p->high);
		double mean = p->n ? p->diff / p->weight : 0;
		out->of[t].spread = p->n ? exp(sqrt(fmax(0, p->square / p->weight - mean * mean))) : 1;
	}
}

static size_t take_jobs(struct one *job, const struct hd_job_list *list, const struct hd_sched_type *type,
	uint32_t ntypes)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct hd_listed_job *j = &list->at[i];
		uint32_t t = 0;
		while (t < ntypes && j->record && strcasecmp(type[t].name, j->record->type) != 0)
			t++;
		if (!j->record || t == ntypes || strcmp(j->record->state, "COMPLETED") != 0 || !*j->name ||
			!(j->duration_s > 0))
			continue;
		job[n++] = (struct one){ j->user, j->name, hd_measured_name(j->name), j->scale, t,
			log(j->duration_s) };
	}
	return n;
}

enum hd_err hd_speeds_measure(struct hd_measured *out, const struct hd_job_list *list,
	const struct hd_sched_type *type, uint32_t ntypes, struct hd_arena *arena, struct hd_diag *diag)
{
	struct one *job = hd_arena_take(arena, list->n + 1, sizeof *job);
	struct measuring m = { hd_arena_take(arena, (size_t)ntypes * ntypes + 1, sizeof *m.pair), ntypes };
	double most = 0;

	if (!job || !m.pair)
		return hd_fail(diag, HD_E_NOMEM, "no memory to measure speeds");
	memset(m.pair, 0, (size_t)ntypes * ntypes * sizeof *m.pair);
	*out = (struct hd_measured){ .reference = 0 };
	size_t n = take_jobs(job, list, type, ntypes);
	if (n)
		qsort(job, n, sizeof *job, by_likeness);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && !by_likeness(&job[to], &job[from]);)
			to++;
		add_group(&m, out, &job[from], to - from);
	}
	for (uint32_t t = 0; t < ntypes; t++) {
		double weight = 0;
		for (uint32_t u = 0; u < ntypes; u++)
			weight += pair_of(&m, t, u)->weight;
		if (weight > most) {
			most = weight;
			out->reference = t;
		}
	}
	solve(&m, out);
	describe(&m, out);
	return HD_OK;
}
