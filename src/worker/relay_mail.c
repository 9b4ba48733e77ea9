#include "worker/relay_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Mail between compute threads of different workers: the worker's letters to the hub and back (relay.h,
 * rule 5). */

#define MAIL_TOKEN (UINT64_C(1) << 63)    /* other tokens are ids and addresses */

static struct hd_xfer_name name_of(const struct hd_relay *r, const struct hd_dist_letter *l)
{
	if (l->kind == HD_XFER_MOMENTS)
		return (struct hd_xfer_name){ HD_XFER_MOMENTS, l->from, l->to, l->stage, 0 };
	const uint32_t cell = l->stage * r->nvns + l->vn;
	return (struct hd_xfer_name){ (enum hd_xfer_kind)l->kind, HD_NOBODY, HD_NOBODY,
		l->kind == HD_XFER_SHARDS ? cell * hd_dist_nparcels(r->worker) + l->number : cell, 0 };
}

static int by_id(const void *a, const void *b)
{
	const struct hd_transfer *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

enum hd_err hd_relay_mail_rows(struct hd_relay *r, uint32_t member, bool out, struct hd_transfer *row,
	struct hd_diag *diag)
{
	const size_t n = hd_dist_mail_list(r->worker, (uint16_t)member, out, NULL);

	if (n == 0)
		return HD_OK;
	void *letter = hd_relay_grown(r->letter, &r->letter_cap, n, sizeof *r->letter);
	if (!letter)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %zu letters between stages", n);
	r->letter = letter;
	(void)hd_dist_mail_list(r->worker, (uint16_t)member, out, r->letter);
	for (size_t i = 0; i < n; i++)
		row[i] = (struct hd_transfer){ .id = hd_transfers_id(&r->rows, name_of(r, &r->letter[i])),
			.bytes = r->letter[i].len };
	qsort(row, n, sizeof *row, by_id);
	return HD_OK;
}

/* ---- taking ---- */

/* Twice as many; letters keep their places, which are tokens. */
static enum hd_err more_places(struct hd_relay *r, struct hd_diag *diag)
{
	const uint64_t cap = r->mail_cap ? 2 * r->mail_cap : 64;
	struct hd_relay_mail *mail = hd_alloc(cap * sizeof *mail);

	if (!mail)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %llu letters between stages",
			(unsigned long long)cap);
	memset(mail, 0, cap * sizeof *mail);
	if (r->mail)
		memcpy(mail, r->mail, r->mail_cap * sizeof *mail);
	hd_free(r->mail);
	r->mail = mail;
	r->mail_cap = cap;
	return HD_OK;
}

static enum hd_err keep(struct hd_relay *r, const struct hd_dist_letter *l, struct hd_diag *diag)
{
	uint64_t i = r->mail_used;

	while (i < r->mail_cap && r->mail[i].state != HD_RELAY_FREE)
		i++;
	enum hd_err err = i < r->mail_cap ? HD_OK : more_places(r, diag);
	if (err)
		return err;
	r->mail_used = i + 1;
	r->nwaits++;
	r->mail[i] = (struct hd_relay_mail){ .letter = *l, .member = l->send ? l->to : l->from,
		.state = HD_RELAY_WAITS };
	return HD_OK;
}

static void become(struct hd_relay *r, struct hd_relay_mail *m, enum hd_relay_mail_state state)
{
	const uint64_t i = (uint64_t)(m - r->mail);

	r->nwaits -= m->state == HD_RELAY_WAITS;
	if (state == HD_RELAY_FREE && i < r->mail_used)
		r->mail_used = i;
	m->state = state;
}

static void let_go(struct hd_relay *r, struct hd_relay_mail *m)
{
	if (m->letter.send)
		hd_dist_mail_sent(r->worker, &m->letter);
	become(r, m, HD_RELAY_FREE);
}

/* A place in a queue is free later; with a link that is gone the step is over. */
static enum hd_err pass_on(struct hd_relay *r, uint64_t i, struct hd_diag *diag)
{
	struct hd_relay_mail *m = &r->mail[i];
	const uint32_t worker = r->view.member[m->member];
	const struct hd_dist_letter *l = &m->letter;
	enum hd_err err;

	m->id = hd_transfers_id(&r->rows, name_of(r, l));
	if (l->send)
		err = hd_hub_send(r->hub, worker, &(struct hd_send){ .transfer = m->id, .step = l->step,
			.bytes = l->bytes, .len = l->len, .token = MAIL_TOKEN | i }, diag);
	else
		err = hd_hub_post(r->hub, worker, m->id, l->bytes, diag);
	if (!err)
		become(r, m, l->send ? HD_RELAY_SENDS : HD_RELAY_POSTED);
	if (err == HD_E_PEERLOST)
		let_go(r, m);
	return err == HD_E_PEERLOST || err == HD_E_AGAIN ? HD_OK : err;
}

enum hd_err hd_relay_mail(struct hd_relay *r, struct hd_diag *diag)
{
	struct hd_dist_letter l;
	enum hd_err err = HD_OK;

	while (!err && hd_dist_mail_next(r->worker, &l))
		err = keep(r, &l, diag);
	uint64_t left = r->nwaits;        /* none, where all were passed on at once */
	for (uint64_t i = 0; left && !err; i++) {
		struct hd_relay_mail *m = &r->mail[i];
		assert(i < r->mail_cap);
		if (m->state != HD_RELAY_WAITS)
			continue;
		left--;
		if (m->letter.epoch < r->epoch)           /* of a step that was fenced since */
			let_go(r, m);
		else if (r->x && m->letter.epoch == r->view.epoch && hd_relay_is_open(r, m->member))
			err = pass_on(r, i, diag);
	}
	return err;
}

/* ---- what becomes of it ---- */

bool hd_relay_sent(struct hd_relay *r, const struct hd_sent *sent)
{
	if (hd_relay_given_back(r, sent->token))
		return true;
	if (!(sent->token & MAIL_TOKEN))
		return false;
	struct hd_relay_mail *m = &r->mail[sent->token & ~MAIL_TOKEN];
	assert(m->state == HD_RELAY_SENDS);
	let_go(r, m);
	return true;
}

enum hd_err hd_relay_mail_here(struct hd_relay *r, uint32_t member, const struct hd_arrival *arrival,
	struct hd_diag *diag)
{
	for (uint64_t i = 0; i < r->mail_cap; i++) {
		struct hd_relay_mail *m = &r->mail[i];
		if (m->state != HD_RELAY_POSTED || m->id != arrival->transfer || m->member != member ||
			m->letter.bytes != arrival->buffer || m->letter.step != arrival->step)
			continue;
		const struct hd_dist_letter l = m->letter;
		become(r, m, HD_RELAY_FREE);
		/* a step that was given up here waits for nothing */
		enum hd_err err = hd_dist_mail_arrived(r->worker, &l, diag);
		return err == HD_E_STALE ? HD_OK : err;
	}
	return hd_fail(diag, HD_E_INTEGRITY,
		"step %llu: mail %u of worker %u came to the buffer of another one",
		(unsigned long long)arrival->step, arrival->transfer, arrival->worker);
}

void hd_relay_mail_void(struct hd_relay *r)
{
	for (uint64_t i = 0; i < r->mail_cap; i++)
		if (r->mail[i].state == HD_RELAY_WAITS || r->mail[i].state == HD_RELAY_POSTED)
			let_go(r, &r->mail[i]);
}
