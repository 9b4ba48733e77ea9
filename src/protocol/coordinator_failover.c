#include "protocol/coordinator_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* A step goes on without the workers that were lost in it: rule 15 of coordinator.h. All of it is asked of
 * the answers to one FENCE; what does not fit together means that the step is begun again. */

void hd_co_forget_stops(struct hd_coordinator *co)
{
	const uint32_t n = co->view.shape.nstages * co->config.nvns;

	for (uint32_t i = 0; i < co->nplaces; i++)
		co->worker[i].answer.stopped = HD_CO_RUNS;
	memset(co->rank_next, 0, sizeof co->rank_next);
	if (!co->config.goes_on || !co->has_view || !n)
		return;
	if (n > co->arrived_cap) {
		hd_free(co->arrived);
		hd_free(co->arrived_run);
		co->arrived_cap = 0;
		co->arrived = hd_alloc(n);
		co->arrived_run = hd_alloc(n * sizeof *co->arrived_run);
		if (!co->arrived || !co->arrived_run)
			return;                   /* then the step is begun again */
		co->arrived_cap = n;
	}
	memset(co->arrived, 0, n);
}

/* Its ranks, and no others, and as many bytes as there are. One without a rank has neither. */
static bool is_whole(const struct hd_coordinator *co, const struct hd_co_worker *w,
	const struct hd_msg_stopped *s)
{
	uint32_t n = 0;
	uint64_t len = 0;

	for (uint32_t r = 0; r < co->view.nranks; r++)
		n += co->view.rank[r].worker == w->worker;
	for (uint32_t i = 0; i < s->nrank; i++)
		if (s->rank[i] >= co->view.nranks || co->view.rank[s->rank[i]].worker != w->worker ||
			(i && s->rank[i] <= s->rank[i - 1]))
			return false;
	for (uint32_t i = 0; i < s->narrived; i++) {
		len += s->arrived[i].n;
		if (s->arrived[i].first > UINT8_MAX)
			return false;
	}
	if (!n)
		return !s->nrank && !s->narrived;
	return n == s->nrank && len == (uint64_t)co->view.shape.nstages * co->config.nvns &&
		len <= co->arrived_cap;
}

bool hd_co_take_stopped(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg *msg)
{
	const struct hd_msg_stopped *s = &msg->stopped;
	struct hd_co_worker_answer *a = &w->answer;
	uint32_t at = 0;

	if (msg->epoch != co->record.epoch || !w->asked || !a->said || !a->stops || a->stopped != HD_CO_RUNS)
		return false;
	a->stopped = HD_CO_CANNOT;
	if (!co->config.goes_on || !co->has_view || s->step != a->at || s->of != co->view.epoch ||
		!is_whole(co, w, s))
		return true;
	for (uint32_t i = 0; i < s->nrank; i++)
		co->rank_next[s->rank[i]] = s->next[i];
	for (uint32_t i = 0; i < s->narrived; i++)
		for (uint32_t k = 0; k < s->arrived[i].n; k++)
			co->arrived[at++] |= (uint8_t)s->arrived[i].first;
	a->stopped = HD_CO_STANDS;
	return true;
}

/* Of the answers so far; `ends`: all that will come are here. */
static bool may_go_on(const struct hd_coordinator *co, const uint32_t *member, uint32_t n, bool ends,
	struct hd_view *rest)
{
	const struct hd_stage_buckets *buckets;

	if (!co->config.goes_on || !co->config.of_shape || !co->has_view || !n || !co->arrived_cap)
		return false;
	if (co->config.nvns < 2)          /* an heir has two roots, and their numbers are below this */
		return false;
	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker_answer *a = &co->worker[i].answer;
		uint64_t any = a->table || a->updated || a->halted;
		if (!hd_co_is_here(&co->worker[i]) || !a->said || !a->member)
			continue;
		for (uint32_t k = 0; k < co->words; k++)
			any |= a->sum[k];
		if (any || !a->begun || !a->stops || a->stopped == HD_CO_CANNOT ||
			(ends && a->stopped != HD_CO_STANDS) ||
			!hd_view_same_shape(&a->shape, &co->view.shape))
			return false;
	}
	buckets = co->config.of_shape(co->config.of_shape_self, &co->view.shape);
	return buckets && buckets->shadows && !buckets->whole &&
		hd_view_without(rest, &co->view, member, n) && hd_view_is_doubled(rest);
}

bool hd_co_awaits_stops(const struct hd_coordinator *co)
{
	uint32_t member[HD_MAX_MEMBERS], n = 0;
	struct hd_view rest;
	bool some = false;

	if (!co->config.goes_on || !co->has_view)
		return false;
	for (uint32_t m = 0; m < co->view.nmembers; m++)
		for (uint32_t i = 0; i < co->nplaces; i++) {
			const struct hd_co_worker *w = &co->worker[i];
			if (w->worker != co->view.member[m] || !hd_co_is_here(w) || !w->answer.said ||
				!w->answer.member)
				continue;
			member[n++] = w->worker;
			some |= w->answer.stops && w->answer.stopped == HD_CO_RUNS;
		}
	return some && may_go_on(co, member, n, false, &rest);
}

/* Each rank's worker holds what its stage reads. */
static bool is_held(const struct hd_coordinator *co, const struct hd_view *rest)
{
	const struct hd_stage_buckets *buckets = co->config.of_shape(co->config.of_shape_self, &rest->shape);

	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		const uint64_t stages = hd_co_is_here(w) && w->answer.said && w->answer.member ?
			hd_view_stages(rest, w->worker) : 0;
		for (uint32_t b = 0; b < co->config.nbuckets && stages; b++)
			if (buckets->at[b].readers & stages && !(w->answer.slot[b / 64] >> b % 64 & 1))
				return false;
	}
	return true;
}

static bool put_runs(struct hd_coordinator *co)
{
	const uint32_t n = co->view.shape.nstages * co->config.nvns;
	uint32_t nruns = 0;

	for (uint32_t i = 0; i < n; i++)
		if (nruns && co->arrived_run[nruns - 1].first == co->arrived[i])
			co->arrived_run[nruns - 1].n++;
		else
			co->arrived_run[nruns++] = (struct hd_vrange){ co->arrived[i], 1 };
	co->open.arrived = co->arrived_run;
	co->open.narrived = nruns <= HD_MSG_RUNS ? nruns : 0;
	return nruns <= HD_MSG_RUNS;
}

static void note_heirs(struct hd_coordinator *co, uint64_t step)
{
	char of[160] = "";
	size_t len = 0;

	for (uint32_t r = 0; r < co->view.nranks && len < sizeof of; r++)
		if (hd_view_doubled(&co->rest, r))
			len += (size_t)snprintf(of + len, sizeof of - len, "%s worker %u runs what %u ran",
				len ? "," : "", co->rest.rank[r].worker, co->view.rank[r].worker);
	hd_co_note(co, "failover", HD_NOBODY, "step %llu goes on:%s", (unsigned long long)step, of);
}

bool hd_co_find_rest(struct hd_coordinator *co, struct hd_co_worker *const *member, uint32_t n,
	uint64_t step)
{
	uint32_t id[HD_MAX_MEMBERS];
	bool lost[HD_VIEW_RANKS] = { false };

	for (uint32_t i = 0; i < n; i++) {
		id[i] = member[i]->worker;
		if (member[i]->answer.at != step || !hd_view_has(&co->view, id[i]))
			return false;
	}
	if (!may_go_on(co, id, n, true, &co->rest) || !is_held(co, &co->rest) || !put_runs(co))
		return false;
	for (uint32_t r = 0; r < co->view.nranks; r++) {
		lost[r] = hd_view_doubled(&co->rest, r);
		if (lost[r])
			co->doubled[co->open.ndoubled++] = r;
	}
	co->open.doubled = co->doubled;
	co->open.next = co->rank_next;
	co->open.nnext = co->view.nranks;
	if (!co->config.goes_on(co->config.goes_on_self, &co->view, co->rank_next, co->arrived, lost) ||
		hd_passes_of_rest(&co->open_passes, &co->view, &co->rest)) {
		co->open.ndoubled = co->open.nnext = co->open.narrived = 0;
		return false;
	}
	note_heirs(co, step);
	return true;
}
