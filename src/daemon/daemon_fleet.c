#include "daemon/daemon_int.h"

/* Which devices are slow across jobs: hosts of autoscale/fleet.h, each against those of its type. What
 * coordinators say of their workers comes with the answers that the daemon asks for anyway: sums, so that the
 * difference of two answers is a window, however many were missed between. */

/* answers come a little earlier than every window */
#define WINDOW_S (HD_FLEET_WINDOW_S - 0.5)

/* Of the worker of that process; HD_POOL_DEVICES: none, as while it starts. */
static uint32_t device_of(const struct hd_daemon *d, int64_t pid)
{
	uint32_t v = 0;

	while (v < d->spec->pools->ndevices && !(d->slot[v].there && d->slot[v].limited == pid))
		v++;
	return pid && v < d->spec->pools->ndevices ? v : HD_POOL_DEVICES;
}

static const struct hd_live_sums *sums_of(const struct watch *w, uint32_t worker)
{
	for (uint32_t i = 0; i < w->nsums; i++)
		if (w->sums[i].worker == worker)
			return &w->sums[i];
	return NULL;
}

static struct hd_live_sums sums_in(const struct hd_live_worker *of)
{
	return (struct hd_live_sums){ (uint32_t)of->id, of->sum_steps, of->sum_vns, of->sum_compute_ns,
		of->sum_read_wait_ns };
}

/* False: it had no step since then, or another coordinator began to count. */
static bool summarize(struct hd_fleet_summary *to, const struct hd_live_sums *was,
	const struct hd_live_sums *is)
{
	static const struct hd_live_sums none;

	was = was ? was : &none;
	const int64_t vns = is->vns - was->vns, steps = is->steps - was->steps,
		compute_ns = is->compute_ns - was->compute_ns,
		data_ns = is->read_wait_ns - was->read_wait_ns;
	if (steps <= 0 || steps > UINT32_MAX || vns <= 0 || data_ns < 0 || compute_ns < data_ns ||
		compute_ns > INT64_MAX / 8000)
		return false;
	to->worker = is->worker;
	to->steps = (uint32_t)steps;
	to->ps[HD_FLEET_COMPUTE] = (uint64_t)((compute_ns - data_ns) * 1000 / vns);
	to->ps[HD_FLEET_DATA] = (uint64_t)(data_ns * 1000 / vns);
	return true;
}

/* A type is meant to be slower than another: its devices are judged apart. */
static void take_type(struct hd_daemon *d, const struct watch *w, const struct hd_live *live, uint32_t type,
	double now_s)
{
	struct hd_fleet_summary summary[HD_LIVE_WORKERS] = { 0 };
	char name[HD_LIVE_WORKERS][96];
	uint32_t n = 0;

	for (uint32_t i = 0; i < live->nworkers; i++) {
		const struct hd_live_sums is = sums_in(&live->worker[i]);
		const uint32_t v = device_of(d, live->worker[i].pid);
		if (v == HD_POOL_DEVICES || hd_pools_type(d->spec->pools, v) != type ||
			!summarize(&summary[n], sums_of(w, is.worker), &is))
			continue;
		hd_pools_device(d->spec->pools, v, name[n]);
		summary[n].host = name[n];
		n++;
	}
	hd_fleet_take(d->fleet, w->job, summary, n, now_s);
}

void daemon_fleet_heard(struct hd_daemon *d, struct watch *w, const struct hd_json *answer)
{
	const double now_s = daemon_now_s(d);

	if (now_s - w->fleet_s < WINDOW_S)
		return;
	struct hd_live *live = hd_arena_take(&d->scratch, 1, sizeof *live);
	if (!live || hd_live_read(answer, live, NULL))
		return;
	w->fleet_s = now_s;
	for (uint32_t t = 0; t < d->spec->pools->ntypes; t++)
		take_type(d, w, live, t, now_s);
	for (w->nsums = 0; w->nsums < live->nworkers; w->nsums++)
		w->sums[w->nsums] = sums_in(&live->worker[w->nsums]);
}

void daemon_fleet_fill(const struct hd_daemon *d, bool slow, struct hd_json_writer *w)
{
	const double now_s = daemon_now_s(d);

	for (uint32_t i = 0; i < d->fleet->n; i++) {
		struct hd_fleet_said said;
		char text[HD_FLEET_TEXT];
		if (!hd_fleet_say(d->fleet, i, now_s, &said) || (slow && !said.slow))
			continue;
		hd_fleet_text(&said, now_s, text);
		hd_fields_put_object(&hd_answer_host_fields, 0, &(struct hd_answer_host){ .host = said.name,
			.jobs = said.jobs, .judged = said.judged, .slow_jobs = said.slow_jobs,
			.slow = said.slow, .cause = said.slow ? hd_fleet_cause_name(said.cause) : "",
			.times = said.times, .share = said.share,
			.since_s = said.slow ? said.since_s : -1, .text = text }, NULL, w);
	}
}
