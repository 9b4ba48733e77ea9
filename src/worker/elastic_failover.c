#include "worker/elastic_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "run/fits.h"

/* A step that goes on after a loss (member.h, rule 12): the member machine asks, the compute thread says how
 * far its ranks are, and takes up what is left of the step. STOP and GO_ON: elastic_act.c. */

/* ---- the compute thread ---- */

/* What cannot be gone on with is said with no rank. It comes behind every COMPUTE of its step. */
enum hd_err hd_elastic_stand(struct hd_elastic *e, const struct hd_command *d, struct hd_command_done *done,
	struct hd_diag *diag)
{
	struct hd_elastic_stood *s = &e->stood;
	const uint32_t self = atomic_load(&e->self);
	uint32_t at[HD_VIEW_RANKS];
	struct hd_diag why = { "" };

	(void)d;
	(void)done;
	s->nranks = 0;
	s->narrived = e->adopted.shape.nstages * e->task->job->nvns;
	if (e->between || e->unfit || !s->narrived || e->adopted.nranks > HD_VIEW_RANKS)
		return HD_OK;
	if (s->narrived > s->cap) {
		hd_free(s->arrived);
		s->arrived = hd_alloc(s->narrived);
		s->cap = s->arrived ? s->narrived : 0;
		if (!s->arrived)
			return hd_fail(diag, HD_E_NOMEM, "no memory for how far a step is");
	}
	if (hd_dist_stopped(e->worker, at, s->arrived, &why))
		return HD_OK;
	for (uint32_t r = 0; r < e->adopted.nranks; r++)
		if (e->adopted.rank[r].worker == self) {
			s->rank[s->nranks] = r;
			s->next[s->nranks++] = at[r];
		}
	return HD_OK;
}

static void note_redone(struct hd_elastic *e, uint32_t redone, uint64_t step)
{
	char text[96];

	snprintf(text, sizeof text, "%u virtual nodes of step %llu are computed again", redone,
		(unsigned long long)step);
	hd_elastic_note(e, "redo", text);
}

/* What stays of the step after a refusal is for CANCEL, which the next view brings. */
enum hd_err hd_elastic_rest(struct hd_elastic *e, const struct hd_command *d, struct hd_command_done *done,
	struct hd_diag *diag)
{
	bool lost[HD_VIEW_RANKS];
	uint16_t worker[HD_VIEW_RANKS];
	uint32_t redone = 0;
	const struct hd_dist_loss loss = { .at = d->rest, .arrived = (const uint8_t *)(d->rest +
		d->view->nranks), .lost = lost, .worker = worker };

	assert(!e->between);
	e->spent.rested = true;
	for (uint32_t r = 0; r < d->view->nranks; r++) {
		lost[r] = hd_view_doubled(d->view, r);
		worker[r] = (uint16_t)hd_view_index(d->view, d->view->rank[r].worker);
	}
	enum hd_err err = hd_dist_rest(e->worker, d->view->epoch, &loss, &redone, diag);
	done->stuck = err != HD_OK;
	if (err)
		hd_elastic_note(e, hd_run_is_unfit(err) ? HD_NOTE_STUCK : "warning", diag->text);
	else if (redone)
		note_redone(e, redone, d->step);
	e->computed = e->stale = done->stuck;
	e->redone += redone;
	return HD_OK;
}

/* ---- the I/O thread ---- */

void hd_elastic_stopped(struct hd_elastic *e, const struct hd_command *d)
{
	struct hd_elastic_stood *s = &e->stood;

	if (d->round != e->round)         /* there may be a later one by now */
		return;
	s->said = (struct hd_member_stood){ .nranks = s->nranks, .narrived = s->narrived, .rank = s->rank,
		.next = s->next, .arrived = s->arrived };
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_STOPPED, .step = d->step,
		.stood = &s->said });
}
