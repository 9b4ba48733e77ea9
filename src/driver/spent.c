#include "driver/spent.h"

#include <string.h>

#include "base/alloc.h"
#include "run/forecast.h"

static void drop(struct hd_spent_worker *w)
{
	hd_free(w->now.kind);
	hd_free(w->was.kind);
	hd_free(w->busy);
}

void hd_spent_finish(struct hd_spent_said *said)
{
	for (uint32_t i = 0; i < said->n; i++)
		drop(&said->worker[i]);
	said->n = 0;
}

static struct hd_spent_worker *find(struct hd_spent_said *said, uint32_t worker)
{
	uint32_t i = 0;

	while (i < said->n && said->worker[i].worker != worker)
		i++;
	if (i < said->n)
		return &said->worker[i];
	if (said->n == HD_MAX_WORKERS) {  /* ids are never used again: the oldest is gone */
		drop(&said->worker[0]);
		memmove(said->worker, said->worker + 1, --said->n * sizeof *said->worker);
	}
	struct hd_spent_worker *w = &said->worker[said->n];
	*w = (struct hd_spent_worker){ .worker = worker,
		.now.kind = hd_alloc(HD_MSG_SPENTS * sizeof *w->now.kind),
		.was.kind = hd_alloc(HD_MSG_SPENTS * sizeof *w->was.kind),
		.busy = hd_alloc(2 * sizeof *w->busy) };
	if (!w->now.kind || !w->was.kind || !w->busy) {   /* rule 3 */
		drop(w);
		return NULL;
	}
	w->busy[0].next = w->busy[1].next = 0;
	said->n++;
	return w;
}

/* Messages of one plan have the same kinds. */
static void keep_busy(struct hd_spent_worker *w, const struct hd_msg_spent *msg)
{
	struct hd_spent_busy *busy = &w->busy[msg->step % 2];

	busy->next = 0;
	if (w->now.n != msg->nspent || w->now.step + 1 != msg->step)
		return;
	memset(busy->ns, 0, sizeof busy->ns);
	for (uint32_t i = 0; i < msg->nspent; i++) {
		const struct hd_spent_kind *was = &w->now.kind[i], *now = &msg->spent[i];
		if (was->rank != now->rank || was->stage != now->stage || was->op != now->op ||
			now->ns < was->ns)
			return;
		busy->ns[now->rank] += hd_forecast_is_busy(now->op) ? (double)(now->ns - was->ns) : 0;
	}
	busy->next = msg->step + 1;
}

void hd_spent_take(struct hd_spent_said *said, uint32_t worker, uint32_t epoch,
	const struct hd_msg_spent *msg)
{
	struct hd_spent_worker *w = find(said, worker);

	if (!w)
		return;
	if (w->now.epoch != epoch) {
		const struct hd_spent_sums was = w->was;
		w->was = w->now;
		w->now = was;
		w->now.n = 0;
	}
	keep_busy(w, msg);
	memcpy(w->now.kind, msg->spent, msg->nspent * sizeof *w->now.kind);
	w->now.n = msg->nspent;
	w->now.epoch = epoch;
	w->now.step = msg->step;
}

static const struct hd_spent_worker *known(const struct hd_spent_said *said, uint32_t worker)
{
	for (uint32_t i = 0; i < said->n; i++)
		if (said->worker[i].worker == worker)
			return &said->worker[i];
	return NULL;
}

const struct hd_spent_sums *hd_spent_of(const struct hd_spent_said *said, uint32_t worker, uint32_t epoch)
{
	const struct hd_spent_worker *w = known(said, worker);
	const struct hd_spent_sums *of = !w ? NULL : w->now.epoch == epoch ? &w->now : &w->was;

	return of && of->epoch == epoch && of->n ? of : NULL;
}

bool hd_spent_step(const struct hd_spent_said *said, const struct hd_view *view, uint64_t step,
	double *busy_ns)
{
	for (uint32_t r = 0; r < view->nranks; r++) {
		const struct hd_spent_worker *w = known(said, view->rank[r].worker);
		if (!w || w->now.epoch != view->epoch || w->busy[step % 2].next != step + 1)
			return false;
		busy_ns[r] = w->busy[step % 2].ns[r];
	}
	return true;
}
