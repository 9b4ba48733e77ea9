#include "worker/command.h"

#include "base/alloc.h"

/* a wake-up is sent; the look is only the bound that every wait has */
enum { HD_DUTY_LOOK_NS = 1000000000 };

enum hd_err hd_duties_init(struct hd_duties *d, void (*wake)(void *user), void *user, struct hd_diag *diag)
{
	*d = (struct hd_duties){ .wake = wake, .user = user };
	d->duty = hd_alloc(HD_DUTIES * sizeof *d->duty);
	d->done = hd_alloc(HD_DUTIES_RESULTS * sizeof *d->done);
	if (!d->duty || !d->done) {
		hd_free(d->duty);
		hd_free(d->done);
		*d = (struct hd_duties){ 0 };
		return hd_fail(diag, HD_E_NOMEM, "no memory for the duties of a worker");
	}
	hd_clock_real(&d->clock);
	hd_lock_init(&d->lock);
	hd_cond_init(&d->given);
	return HD_OK;
}

void hd_duties_finish(struct hd_duties *d)
{
	if (!d->duty)
		return;
	hd_cond_finish(&d->given);
	hd_lock_finish(&d->lock);
	hd_free(d->duty);
	hd_free(d->done);
	*d = (struct hd_duties){ 0 };
}

enum hd_err hd_duties_give(struct hd_duties *d, const struct hd_duty *duty, struct hd_diag *diag)
{
	hd_lock_take(&d->lock);
	bool full = d->end - d->first == HD_DUTIES, idle = d->end == d->first;
	if (!full)
		d->duty[d->end++ % HD_DUTIES] = *duty;
	hd_lock_give(&d->lock);
	if (idle)
		/* with the lock given back: who is woken needs it at once */
		hd_cond_wake(&d->given);
	return full ? hd_fail(diag, HD_E_AGAIN, "%d duties are open", HD_DUTIES) : HD_OK;
}

bool hd_duties_result(struct hd_duties *d, struct hd_duty_done *done)
{
	hd_lock_take(&d->lock);
	bool some = d->end_done > d->first_done;
	if (some) {
		*done = d->done[d->first_done++ % HD_DUTIES_RESULTS];
		if (d->end_done - d->first_done == HD_DUTIES_RESULTS - 1)
			hd_cond_wake(&d->given);
	}
	hd_lock_give(&d->lock);
	return some;
}

uint32_t hd_duties_take(struct hd_duties *d, struct hd_duty *duty, uint32_t cap)
{
	uint32_t n = 0;

	hd_lock_take(&d->lock);
	atomic_store(&d->busy, d->first < d->end);
	while (d->first == d->end)
		hd_cond_wait(&d->given, &d->lock, hd_clock_now_ns(&d->clock) + HD_DUTY_LOOK_NS);
	atomic_store(&d->busy, true);
	do
		duty[n++] = d->duty[d->first++ % HD_DUTIES];
	while (n < cap && d->first < d->end && d->duty[d->first % HD_DUTIES].kind == duty[0].kind
		&& (duty[0].kind == HD_DUTY_FOLD || duty[0].kind == HD_DUTY_ARRIVED));
	hd_lock_give(&d->lock);
	return n;
}

void hd_duties_done(struct hd_duties *d, const struct hd_duty_done *done)
{
	hd_lock_take(&d->lock);
	while (d->end_done - d->first_done == HD_DUTIES_RESULTS)
		hd_cond_wait(&d->given, &d->lock, hd_clock_now_ns(&d->clock) + HD_DUTY_LOOK_NS);
	d->done[d->end_done++ % HD_DUTIES_RESULTS] = *done;
	hd_lock_give(&d->lock);
	atomic_fetch_add(&d->progress, 1);
	d->wake(d->user);
}
