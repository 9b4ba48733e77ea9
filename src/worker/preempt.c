#include <stdlib.h>
#include <string.h>

#include "worker/preempt_int.h"

const struct play preempt_plays[PLAYS] = {
	{ HD_PREEMPT_PLANNED, ALONE }, { HD_PREEMPT_PLANNED, FIFO }, { HD_PREEMPT_PLANNED, TIMED },
	{ HD_PREEMPT_ANSWER, ALONE }, { HD_PREEMPT_ANSWER, TIMED },
	{ HD_PREEMPT_ORDER, FIFO }, { HD_PREEMPT_ORDER, TIMED },
	{ HD_PREEMPT_STATE, ALONE }, { HD_PREEMPT_STATE, TIMED },
	{ HD_PREEMPT_GAPS, ALONE }, { HD_PREEMPT_GAPS, TIMED },
};

const char *hd_preempt_case_name(enum hd_preempt_case what)
{
	static const char *const names[] = { "planned", "answer", "order", "state", "gaps" };

	return names[what];
}

enum hd_err preempt_take_bytes(struct preempt *p, uint32_t me)
{
	struct preempt_bytes *b = &p->bytes[me];
	uint64_t len = 0;

	for (uint32_t id = 0; id < IDS; id++)
		len += preempt_len(p->spec, id);
	enum hd_err err = hd_memory_take(len, HD_MEMORY_TOUCH, &b->all, &p->ends.end[me].diag);
	uint8_t *at = b->all.at;
	for (uint32_t id = 0; id < IDS && !err; at += preempt_len(p->spec, id++))
		b->at[id] = at;
	return err;
}

/* ---- figures ---- */

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *x, uint32_t n)
{
	qsort(x, n, sizeof *x, rising);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void take_play(const struct preempt *p, struct preempt_figures *f, uint32_t i,
	struct hd_preempt_row *row)
{
	const enum how how = preempt_plays[i].how;
	const double urgent = median(f->urgent[i], p->spec->rounds), whole = median(f->whole[i],
		p->spec->rounds);

	if (how == ALONE || (how == FIFO && preempt_plays[i].what == HD_PREEMPT_ORDER))
		row->alone = whole;
	if (how == FIFO) {
		row->fifo = urgent;
		row->fifo_inversions = f->inversions[i];
	}
	if (how != TIMED)
		return;
	row->bulk = whole;
	row->urgent = urgent;
	row->inversions = f->inversions[i];
	row->preempted = f->preempted[i];
	row->aged = f->aged[i];
	row->share = f->share[i] / p->spec->rounds;
}

static void take_rows(const struct preempt *p, struct preempt_figures *f,
	struct hd_preempt_row row[HD_PREEMPT_CASES])
{
	const struct hd_preempt_spec *s = p->spec;

	memset(row, 0, HD_PREEMPT_CASES * sizeof *row);
	for (uint32_t i = 0; i < PLAYS; i++)
		take_play(p, f, i, &row[preempt_plays[i].what]);
	const double per_ms = s->link.rate_mbit ? s->link.rate_mbit * 125.0 :
		(double)s->bulk / row[HD_PREEMPT_PLANNED].alone;
	for (enum hd_preempt_case c = 0; c <= HD_PREEMPT_ORDER; c++)
		row[c].wire = s->link.delay_ms + (double)preempt_len(s, c == HD_PREEMPT_ORDER ?
			(uint32_t)ID_LAYERS : (uint32_t)ID_URGENT) / per_ms;
}

enum hd_err hd_preempt_run(const struct hd_preempt_spec *spec, struct hd_preempt_row row[HD_PREEMPT_CASES],
	struct hd_diag *diag)
{
	struct hd_memory room;

	enum hd_err err = hd_memory_take(sizeof(struct preempt) + sizeof(struct preempt_figures),
		HD_MEMORY_LAZY, &room, diag);
	if (err)
		return err;
	struct preempt *p = room.at;
	p->spec = spec;
	p->figures = (struct preempt_figures *)(p + 1);
	p->ends.transport = spec->transport;
	p->ends.folder = spec->folder;
	p->ends.name = "heddle preempt";
	p->ends.streams_cap = 256;
	p->ends.patience_ns = 60 * HD_NS_PER_S;
	if (spec->link.rate_mbit)
		p->ends.patience_ns += (int64_t)(spec->bulk * 80000 / spec->link.rate_mbit);
	err = hd_ends_run(&p->ends, &spec->link, preempt_near, preempt_far, p, diag);
	if (!err)
		take_rows(p, p->figures, row);
	hd_memory_give(&p->bytes[0].all);
	hd_memory_give(&p->bytes[1].all);
	hd_memory_give(&room);
	return err;
}
