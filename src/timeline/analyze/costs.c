#include "timeline/analyze/costs.h"

#include <stdlib.h>

uint32_t hd_tl_size_of(uint64_t bytes) { return bytes < 2 ? 0 : (uint32_t)(63 - __builtin_clzll(bytes)); }

bool hd_tl_at_end(const struct hd_timeline *tl, uint32_t process, uint64_t send, uint64_t recv)
{
	return tl->lane[tl->event[send].lane].process == process ||
		tl->lane[tl->event[recv].lane].process == process;
}

static int by_ns(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The lower one of two in the middle. Sorts. */
static int64_t median(int64_t *v, size_t n)
{
	qsort(v, n, sizeof *v, by_ns);
	return v[(n - 1) / 2];
}

/* ---- instructions ---- */

struct alike { uint64_t event; uint32_t name; uint32_t process; uint64_t bytes; };

static int by_kind(const void *a, const void *b)
{
	const struct alike *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static size_t list(const struct hd_tl_costs *c, struct alike *a)
{
	const struct hd_timeline *tl = c->causes->tl;
	size_t n = 0;

	for (uint64_t i = 0; i < tl->nevents; i++) {
		const struct hd_tl_event *e = &tl->event[i];
		if (e->kind != HD_EVENT_OP || c->own[i] <= 0 || e->t0 < c->span.t0 || e->t1 > c->span.t1)
			continue;
		if (a)
			a[n] = (struct alike){ i, e->name, tl->lane[e->lane].process, hd_work_bytes(e->arg) };
		n++;
	}
	return n;
}

static enum hd_err compare_work(struct hd_tl_costs *c, uint32_t process, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const size_t n = list(c, NULL);
	struct alike *a = hd_arena_take(arena, n + 1, sizeof *a);
	int64_t *ns = hd_arena_take(arena, n + 1, sizeof *ns);

	if (!a || !ns)
		return hd_fail(diag, HD_E_NOMEM, "no memory to compare %zu instructions", n);
	list(c, a);
	if (n)
		qsort(a, n, sizeof *a, by_kind);
	/* of each process the mean: one instruction of a wave runs all of it, the others take nothing */
	for (size_t i = 0, end; i < n; i = end) {
		size_t k = 0;
		for (end = i; end < n && a[end].name == a[i].name && a[end].bytes == a[i].bytes;) {
			const size_t from = end;
			int64_t sum = 0;
			for (; end < n && a[end].name == a[i].name && a[end].bytes == a[i].bytes &&
				a[end].process == a[from].process; end++)
				sum += c->own[a[end].event];
			if (a[from].process != process)
				ns[k++] = sum / (int64_t)(end - from);
		}
		const int64_t middle = k ? median(ns, k) : -1;
		for (size_t m = i; m < end; m++)
			c->others[a[m].event] = middle;
	}
	return HD_OK;
}

/* ---- channels ---- */

/* Sums of transfers of a size (a power of two): those that have the process at neither end, and its own. */
struct moved { double others, own; uint32_t nothers, nown; };

int64_t hd_tl_wire_of(const struct hd_timeline *tl, uint64_t send, uint64_t recv)
{
	const int64_t first = tl->event[send].first > tl->event[send].t0 ? tl->event[send].first :
		tl->event[send].t0;

	return tl->event[recv].t1 > first ? tl->event[recv].t1 - first : 0;
}

/* The owner of a bucket is sent more, so a size may be there at one process alone: no more than the next
 * smaller one so often, and no more than a larger one. -1: the others have none. */
static double others_take(const struct moved m[HD_TL_SIZES], uint32_t size)
{
	double most = -1;

	for (uint32_t k = size + 1; k-- > 0;)
		if (m[k].nothers) {
			most = m[k].others / m[k].nothers * (double)(UINT64_C(1) << (size - k));
			break;
		}
	for (uint32_t k = size + 1; k < HD_TL_SIZES; k++)
		if (m[k].nothers) {
			const double larger = m[k].others / m[k].nothers;
			return most < 0 || larger < most ? larger : most;
		}
	return most;
}

/* By means, and over all sizes: single transfers vary, and their median would forgive the slow ones. */
static void compare_channels(struct hd_tl_costs *c, uint32_t process)
{
	const struct hd_tl_causes *causes = c->causes;
	const struct hd_timeline *tl = causes->tl;
	struct moved m[HD_TL_SIZES] = { 0 };
	double own = 0, others = 0;

	for (size_t i = 0; i < causes->nrecvs; i++) {
		const uint64_t recv = causes->recv[i].event, send = hd_tl_send_of(causes, recv);
		if (send == HD_TL_NO_EVENT || tl->event[recv].t1 <= c->span.t0 || tl->event[send].t0 >=
			c->span.t1)
			continue;
		struct moved *to = &m[hd_tl_size_of(tl->event[send].arg)];
		const double ns = (double)hd_tl_wire_of(tl, send, recv);
		const bool its = hd_tl_at_end(tl, process, send, recv);
		to->own += its ? ns : 0;
		to->nown += its;
		to->others += its ? 0 : ns;
		to->nothers += !its;
	}
	for (uint32_t k = 0; k < HD_TL_SIZES; k++)
		if (m[k].nown && others_take(m, k) >= 0) {
			own += m[k].own;
			others += m[k].nown * others_take(m, k);
		}
	c->channel = own > 0 && others < own ? others / own : 1;
}

/* ---- sums ---- */

static void sum(struct hd_tl_costs *c)
{
	const struct hd_tl_causes *causes = c->causes;

	for (uint64_t i = 0; i < causes->begin[causes->tl->nlanes]; i++) {
		const struct hd_tl_slice *s = &causes->slice[i];
		struct hd_tl_cut cut[HD_TL_CUTS];
		const size_t process = causes->tl->lane[s->lane].process;
		if (s->t1 <= c->span.t0 || s->t0 >= c->span.t1)
			continue;
		if (s->part == HD_TL_PART_WORK)
			c->own[s->event] += s->t1 - s->t0;
		for (uint32_t k = 0, n = hd_tl_slice_cut(causes, s, cut); k < n; k++) {
			const struct hd_tl_span both = hd_tl_clip(cut[k].span, c->span);
			c->part[process * HD_TL_NPARTS + cut[k].part] += both.t1 - both.t0;
		}
	}
}

static enum hd_err compare_sums(struct hd_tl_costs *c, uint32_t process, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_timeline *tl = c->causes->tl;
	int64_t *ns = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *ns);

	if (!ns)
		return hd_fail(diag, HD_E_NOMEM, "no memory to compare %u processes", tl->nprocesses);
	for (uint32_t part = 0; part < HD_TL_NPARTS; part++) {
		const int64_t own = process < tl->nprocesses ? c->part[(size_t)process * HD_TL_NPARTS + part]
			: 0;
		size_t n = 0;
		for (uint32_t p = 0; p < tl->nprocesses; p++)
			if (p != process && c->part[(size_t)p * HD_TL_NPARTS + HD_TL_PART_WORK] > 0)
				ns[n++] = c->part[(size_t)p * HD_TL_NPARTS + part];
		const int64_t middle = n ? median(ns, n) : own;
		c->factor[part] = own > 0 && middle < own ? (double)middle / (double)own : 1;
	}
	return HD_OK;
}

enum hd_err hd_tl_costs_of(const struct hd_tl_causes *causes, struct hd_tl_span span, uint32_t process,
	struct hd_arena *arena, struct hd_tl_costs *costs, struct hd_diag *diag)
{
	const struct hd_timeline *tl = causes->tl;
	struct hd_tl_costs c = { .causes = causes, .span = span };

	c.own = hd_arena_take(arena, (size_t)tl->nevents + 1, sizeof *c.own);
	c.others = hd_arena_take(arena, (size_t)tl->nevents + 1, sizeof *c.others);
	c.part = hd_arena_take(arena, ((size_t)tl->nprocesses + 1) * HD_TL_NPARTS, sizeof *c.part);
	if (!c.own || !c.others || !c.part)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the costs of %llu events",
			(unsigned long long)tl->nevents);
	for (uint64_t e = 0; e < tl->nevents; e++)
		c.others[e] = -1;
	sum(&c);
	enum hd_err err = compare_work(&c, process, arena, diag);
	compare_channels(&c, process);
	if (!err)
		err = compare_sums(&c, process, arena, diag);
	if (!err)
		*costs = c;
	return err;
}
