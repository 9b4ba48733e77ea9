#include <string.h>

#include "base/bits.h"
#include "balance/solve_int.h"

__extension__ typedef unsigned __int128 wide;
static const uint64_t ps_per_s = 1000000000000u;

void hd_solve_divide(const struct hd_solve_ask *ask, const uint32_t *type, uint32_t n, uint32_t v,
	uint32_t *count)
{
	memset(count, 0, n * sizeof *count);
	while (v--) {
		uint32_t best = 0;
		int64_t least = HD_VN_NEVER;
		for (uint32_t d = 0; d < n; d++) {
			int64_t ps = count[d] < ask->nvns ? ask->type[type[d]].ps[count[d] + 1] : HD_VN_NEVER;
			if (ps < least) {
				least = ps;
				best = d;
			}
		}
		count[best]++;
	}
}

/* One virtual node after the other, as hd_solve_divide() shares them out. */
static void fill_table(const struct hd_solve_ask *ask, struct hd_solve_class *c, uint32_t *count)
{
	memset(count, 0, c->ndevices * sizeof *count);
	for (uint32_t v = 1; v <= ask->nvns; v++) {
		uint32_t best = 0;
		int64_t least = HD_VN_NEVER, back = HD_VN_NEVER;
		for (uint32_t d = 0; d < c->ndevices; d++)
			if (ask->type[c->type[d]].ps[count[d] + 1] < least) {
				least = ask->type[c->type[d]].ps[count[d] + 1];
				best = d;
			}
		count[best]++;
		for (uint32_t d = 0; d < c->ndevices; d++)
			if (count[d] && ask->type[c->type[d]].back_ps[count[d]] < back)
				back = ask->type[c->type[d]].back_ps[count[d]];
		c->cost.ps[v] = least;            /* never falls: what is left to choose from only grows */
		c->cost.back_ps[v] = back;
	}
}

static uint32_t now_of(const struct hd_solve_ask *ask, uint32_t worker)
{
	uint32_t n = 0;

	for (uint32_t d = 0; ask->now && d < ask->ndevices; d++)
		n += ask->device[d].worker == worker ? ask->now[d] : 0;
	return n;
}

static void join_class(const struct hd_solve_ask *ask, struct hd_solve_class *c, uint32_t worker)
{
	uint32_t at = c->nworkers++, now = now_of(ask, worker);

	while (at && now_of(ask, c->worker[at - 1]) < now) {
		c->worker[at] = c->worker[at - 1];
		at--;
	}
	c->worker[at] = worker;
}

static enum hd_err new_class(struct hd_solve_search *s, const uint32_t *type, uint32_t n, uint32_t worker)
{
	struct hd_solve_class *c = &s->class[s->nclasses];
	uint32_t nvns = s->ask->nvns, *count = hd_arena_take(s->scratch, n, sizeof *count);

	*c = (struct hd_solve_class){ .ndevices = n, .bytes_per_s = s->ask->worker[worker].bytes_per_s,
		.worker = hd_arena_take(s->arena, s->ask->nworkers, sizeof *c->worker),
		.type = hd_arena_take(s->arena, n, sizeof *c->type),
		.cost = { .nvns = nvns, .ps = hd_arena_take(s->arena, (size_t)nvns + 1, sizeof *c->cost.ps),
			.back_ps = hd_arena_take(s->arena, (size_t)nvns + 1, sizeof *c->cost.back_ps) } };
	if (!count || !c->worker || !c->type || !c->cost.ps || !c->cost.back_ps)
		return hd_fail(s->diag, HD_E_NOMEM,
			"no memory for %u virtual nodes on a worker of %u devices", nvns, n);
	memcpy(c->type, type, n * sizeof *type);
	fill_table(s->ask, c, count);
	s->nclasses++;
	return HD_OK;
}

static enum hd_err classify(struct hd_solve_search *s, const uint32_t *type, uint32_t n, uint32_t worker)
{
	uint32_t c = 0;
	enum hd_err err = HD_OK;

	while (c < s->nclasses && (s->class[c].ndevices != n ||
		s->class[c].bytes_per_s != s->ask->worker[worker].bytes_per_s ||
	       memcmp(s->class[c].type, type, n * sizeof *type) != 0))
		c++;
	if (c == s->nclasses)
		err = new_class(s, type, n, worker);
	if (!err)
		join_class(s->ask, &s->class[c], worker);
	return err;
}

enum hd_err hd_solve_classes(struct hd_solve_search *s)
{
	const struct hd_solve_ask *ask = s->ask;
	uint32_t *type = hd_arena_take(s->scratch, ask->ndevices, sizeof *type);
	enum hd_err err = HD_OK;

	s->class = hd_arena_take(s->arena, ask->nworkers, sizeof *s->class);
	s->used = hd_arena_take(s->arena, ask->nworkers, sizeof *s->used);
	if (!type || !s->class || !s->used)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for %u workers", ask->nworkers);
	for (uint32_t w = 0; w < ask->nworkers && !err; w++) {
		uint32_t n = 0;
		for (uint32_t d = 0; d < ask->ndevices; d++)
			if (ask->device[d].worker == w && (!s->allowed || s->allowed[d]) &&
				ask->type[ask->device[d].type].ps[1] != HD_VN_NEVER)
				type[n++] = ask->device[d].type;
		if (n)
			err = classify(s, type, n, w);
	}
	return err;
}

int64_t hd_solve_exchange(const struct hd_solve_ask *ask, uint64_t bytes_per_s, uint32_t r, uint32_t n)
{
	wide bytes = (wide)(r + 1) * (uint64_t)ask->gradient_bytes * (n - 1), by = (wide)bytes_per_s * n,
		ps = 0;

	if (n <= 1)
		return 0;
	if (bytes_per_s)
		ps = (bytes * ps_per_s + by - 1) / by;
	ps += 2 * (wide)(uint64_t)ask->latency_ps * hd_ceil_log2(n);
	return ps > HD_VN_PS_MAX ? HD_VN_PS_MAX : (int64_t)ps;
}
