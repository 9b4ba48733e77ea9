/* testing_mail.h -- dist.h's mail between stages for tests of this room whose worker is a fake: none, unless
 * a test says so. */
#ifndef HD_WORKER_TESTING_MAIL_H
#define HD_WORKER_TESTING_MAIL_H

#include "engine/dist.h"

enum { HD_MAIL_FAKES = 16 };
/* Of one worker; the others have none. */
static struct {
	const struct hd_worker *worker;
	uint32_t nstages, nshadows, nsyncs;
	struct hd_dist_letter list[HD_MAIL_FAKES]; size_t nlist;          /* the letters of every step */
	struct hd_dist_letter queue[HD_MAIL_FAKES]; size_t head, nqueue;  /* handed over */
	struct hd_dist_letter sent[HD_MAIL_FAKES], arrived[HD_MAIL_FAKES]; size_t nsent, narrived;
	enum hd_err arrives;                      /* what the worker says of an arrival */
	uint32_t fence;
} hd_mail_fake;

size_t hd_dist_mail_list(const struct hd_worker *w, uint16_t peer, bool send, struct hd_dist_letter *letter)
{
	size_t n = 0;

	for (size_t i = 0; w == hd_mail_fake.worker && i < hd_mail_fake.nlist; i++) {
		const struct hd_dist_letter *l = &hd_mail_fake.list[i];
		if (l->send != send || (send ? l->to : l->from) != peer)
			continue;
		if (letter)
			letter[n] = *l;
		n++;
	}
	return n;
}

bool hd_dist_mail_next(struct hd_worker *w, struct hd_dist_letter *letter)
{
	if (w != hd_mail_fake.worker || hd_mail_fake.head == hd_mail_fake.nqueue)
		return false;
	*letter = hd_mail_fake.queue[hd_mail_fake.head++];
	return true;
}

void hd_dist_mail_sent(struct hd_worker *w, const struct hd_dist_letter *letter)
{
	(void)w;
	hd_mail_fake.sent[hd_mail_fake.nsent++] = *letter;
}

enum hd_err hd_dist_mail_arrived(struct hd_worker *w, const struct hd_dist_letter *letter,
	struct hd_diag *diag)
{
	(void)w;
	(void)diag;
	hd_mail_fake.arrived[hd_mail_fake.narrived++] = *letter;
	return hd_mail_fake.arrives;
}

void hd_dist_fence(struct hd_worker *w, uint32_t epoch)
{
	if (w == hd_mail_fake.worker)
		hd_mail_fake.fence = epoch;
}

uint32_t hd_dist_nstages(const struct hd_worker *w) { return w == hd_mail_fake.worker ?
	hd_mail_fake.nstages : 1; }

uint32_t hd_dist_nshadows(const struct hd_worker *w) { return w == hd_mail_fake.worker ?
	hd_mail_fake.nshadows : 0; }
uint32_t hd_dist_nparcels(const struct hd_worker *w) { (void)w; return 0; }
uint32_t hd_dist_nsyncs(const struct hd_worker *w) { return w == hd_mail_fake.worker ?
	hd_mail_fake.nsyncs : 0; }

/* Every worker says its part of every virtual node: a number in the entry's byte of its own. */
bool hd_dist_says(const struct hd_worker *w, uint16_t from, uint32_t vn)
{
	(void)w;
	(void)vn;
	return from < 3;
}

void hd_dist_leaf_merge(const struct hd_worker *w, uint16_t from, const uint8_t *entry, uint8_t *into)
{
	(void)w;
	into[8 + from] = entry[8 + from];
}

/* Every run has something of every stage. */
bool hd_dist_run_has(const struct hd_worker *w, uint32_t run, uint16_t stage)
{
	(void)w;
	(void)run;
	(void)stage;
	return true;
}

#endif
