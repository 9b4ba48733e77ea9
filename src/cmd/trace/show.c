#include "cmd/trace/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { PREDICTED = 10, CAUSES = 4 };

static double share(int64_t part, int64_t of) { return of > 0 ? (double)part / (double)of : 0; }

static bool has(const struct hd_tl_summary *s, uint32_t process)
{
	return s->process[process].ndevices > 0 && s->process[process].sum.m > 0;
}

/* ---- JSON ---- */

/* of a coordinator -1 */
static void put_worker(struct hd_json_writer *w, const struct hd_timeline *tl, uint32_t process)
{
	const struct hd_tl_process *p = &tl->process[process];

	hd_json_put_i64(w, "worker", p->worker == HD_TL_NONE ? -1 : (int64_t)p->worker);
	hd_json_put_text(w, "name", p->name);
	hd_json_put_i64(w, "pid", p->pid);
}

static void put_parts(struct hd_json_writer *w, const char *key, const int64_t part[HD_TL_NPARTS])
{
	hd_json_open_object(w, key);
	for (int k = 0; k < HD_TL_NPARTS; k++)
		if (part[k])
			hd_json_put_i64(w, hd_tl_part_text((enum hd_tl_part)k), part[k]);
	hd_json_close(w);
}

static void put_ratio(struct hd_json_writer *w, const char *key, double ratio)
{
	if (isfinite(ratio))
		hd_json_put_f64(w, key, ratio);
	else
		hd_json_put_null(w, key);
}

static void put_stragglers(struct hd_json_writer *w, const struct hd_tl_summary *s)
{
	hd_json_open_array(w, "stragglers");
	for (uint32_t i = 0; i < s->stragglers.n; i++) {
		const struct hd_tl_straggler *g = &s->stragglers.straggler[i];
		hd_json_open_object(w, NULL);
		put_worker(w, s->tl, g->process);
		hd_json_put_text(w, "cause", hd_tl_hold_text(g->cause));
		hd_json_put_f64(w, "share", g->share);
		hd_json_put_f64(w, "gain", g->gain);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_breakdown(struct hd_json_writer *w, const struct hd_tl_summary *s, uint32_t process)
{
	const struct hd_tl_process_sum *p = &s->process[process];

	hd_json_open_object(w, NULL);
	put_worker(w, s->tl, process);
	hd_json_put_i64(w, "steps", p->nsteps);
	hd_json_put_i64(w, "devices", p->ndevices);
	hd_json_put_i64(w, "m_ns", p->sum.m);
	put_parts(w, "parts_ns", p->sum.part);
	hd_json_put_i64(w, "transfer_ns", p->sum.transfer);
	hd_json_put_i64(w, "exposed_ns", p->sum.exposed);
	hd_json_put_i64(w, "hidden_ns", p->sum.hidden);
	hd_json_put_i64(w, "rest_ns", p->sum.rest);
	hd_json_put_i64(w, "redone_ns", p->redone);
	put_ratio(w, "E", p->sum.e);
	put_ratio(w, "S", p->sum.s);
	put_ratio(w, "alpha", p->sum.alpha);
	put_parts(w, "blame_ns", p->blame);
	if (s->stragglers.nsteps) {
		hd_json_put_f64(w, "gain", s->stragglers.gain[process]);
		if (s->stragglers.starved[process] >= 0)
			hd_json_put_i64(w, "processor_wait_ns", s->stragglers.starved[process]);
		hd_json_put_i64(w, "quota_wait_ns", s->stragglers.held[process]);
	}
	hd_json_close(w);
}

static void put_path(struct hd_json_writer *w, const struct hd_tl_summary *s, uint32_t process)
{
	const struct hd_tl_process_sum *p = &s->process[process];
	int64_t sum = 0;

	for (int k = 0; k < HD_TL_NPARTS; k++)
		sum += p->path[k];
	if (!sum)
		return;
	hd_json_open_object(w, NULL);
	put_worker(w, s->tl, process);
	hd_json_put_f64(w, "share", share(sum, s->path));
	put_parts(w, "parts_ns", p->path);
	hd_json_close(w);
}

static void put_predicted(struct hd_json_writer *w, const struct hd_tl_summary *s)
{
	hd_json_open_array(w, "predicted");
	for (size_t i = 0; i < s->npredicted; i++) {
		const struct hd_tl_predicted *g = &s->predicted[i];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", g->name < s->tl->nnames ? s->tl->name[g->name] : "?");
		hd_json_put_text(w, "kind", hd_event_text(g->kind));
		hd_json_put_i64(w, "primitive", g->primitive);
		hd_json_put_i64(w, "log2_bytes", g->size);
		hd_json_put_i64(w, "n", (int64_t)g->n);
		hd_json_put_f64(w, "ratio", g->ratio);
		hd_json_put_f64(w, "p10", g->p10);
		hd_json_put_f64(w, "p90", g->p90);
		hd_json_put_f64(w, "error", g->error);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static double replay_error(const struct hd_tl_summary *s)
{
	return share(s->replayed.replayed - s->replayed.recorded, s->replayed.recorded);
}

static void put_rest(struct hd_json_writer *w, const struct hd_tl_summary *s)
{
	hd_json_open_object(w, "order");
	hd_json_put_i64(w, "transfers", (int64_t)s->orders.transfers);
	hd_json_put_i64(w, "pairs", (int64_t)s->orders.pairs);
	hd_json_put_i64(w, "violations", (int64_t)s->orders.violations);
	hd_json_close(w);
	hd_json_put_f64(w, "replay_error", replay_error(s));
	hd_json_put_i64(w, "waits_for_transfers", (int64_t)s->nwaits);
	hd_json_put_i64(w, "unmatched", (int64_t)s->nunmatched);
	hd_json_put_i64(w, "lost", (int64_t)s->tl->nlost);
	hd_json_open_array(w, "unaligned");
	for (uint32_t p = 0; p < s->tl->nprocesses; p++)
		if (!s->tl->process[p].aligned)
			hd_json_put_text(w, NULL, s->tl->process[p].name);
	hd_json_close(w);
}

void hd_trace_put_summary(struct hd_json_writer *w, const struct hd_tl_summary *s)
{
	char text[HD_TL_HELD_BYTES];

	hd_json_open_object(w, "steps");
	hd_json_put_i64(w, "first", (int64_t)s->range.first);
	hd_json_put_i64(w, "last", (int64_t)s->range.last);
	hd_json_put_i64(w, "judged", s->stragglers.nsteps);
	hd_json_close(w);
	put_stragglers(w, s);
	hd_json_open_array(w, "breakdown");
	for (uint32_t p = 0; p < s->tl->nprocesses; p++)
		if (has(s, p))
			put_breakdown(w, s, p);
	hd_json_close(w);
	hd_json_open_array(w, "critical_path");
	for (uint32_t p = 0; p < s->tl->nprocesses; p++)
		put_path(w, s, p);
	hd_json_close(w);
	hd_json_open_object(w, "bubbles");
	for (int k = 0; k < HD_TL_NPARTS; k++)
		if (k != HD_TL_PART_WORK && s->part[k])
			hd_json_put_f64(w, hd_tl_part_text((enum hd_tl_part)k), share(s->part[k], s->time));
	hd_json_close(w);
	put_predicted(w, s);
	put_rest(w, s);
	hd_tl_held(s, text);
	hd_json_put_text(w, "held", text);
}

/* ---- words ---- */

static bool is_control(const char *at, size_t n)
{
	const unsigned char a = (unsigned char)at[0];

	return n == 1 ? a < 0x20 || a == 0x7f : n == 2 && a == 0xc2 && (unsigned char)at[1] < 0xa0;
}

const char *hd_trace_shown(const char *text, char *room, size_t cap)
{
	const size_t len = strlen(text);
	size_t used = 0;

	for (size_t at = 0, n; at < len; at += n) {
		size_t valid = n = hd_utf8_len(text + at, len - at);
		if (!n || is_control(text + at, n))
			valid = 0;
		n = n ? n : 1;
		if (used + (valid ? valid : 1) >= cap)
			break;
		memcpy(room + used, valid ? text + at : "?", valid ? valid : 1);
		used += valid ? valid : 1;
	}
	room[used] = 0;
	return room;
}

/* The largest parts but one, as ", data 12 %". */
static void print_largest(const int64_t part[HD_TL_NPARTS], int64_t of, enum hd_tl_part but)
{
	uint32_t said = 1u << but;

	for (int n = 0; n < CAUSES; n++) {
		int best = -1;
		for (int k = 0; k < HD_TL_NPARTS; k++)
			if (!(said >> k & 1) && (best < 0 || part[k] > part[best]))
				best = k;
		if (best < 0 || 100 * share(part[best], of) < 0.5)
			break;
		printf("%s%s %.0f %%", n ? ", " : "", hd_tl_part_text((enum hd_tl_part)best),
			100 * share(part[best], of));
		said |= 1u << best;
	}
	printf("\n");
}

static void print_ratio(double ratio)
{
	if (isfinite(ratio))
		printf(" %6.2f", ratio);
	else
		printf(" %6s", "-");
}

static void print_breakdown(const struct hd_tl_summary *s)
{
	char name[HD_TRACE_SHOWN];

	printf("%-12s %6s %10s %8s %6s %6s %6s  stood still for\n", "process", "steps", "step (ms)",
		"compute",
		"E", "S", "alpha");
	for (uint32_t i = 0; i < s->tl->nprocesses; i++) {
		const struct hd_tl_process_sum *p = &s->process[i];
		if (!has(s, i))
			continue;
		printf("%-12s %6u %10.3f %6.0f %%", hd_trace_shown(s->tl->process[i].name, name, sizeof name),
			p->nsteps,
			(double)p->sum.m / 1e6 / p->nsteps / p->ndevices,
			100 * share(p->sum.part[HD_TL_PART_WORK], p->sum.m));
		print_ratio(p->sum.e);
		print_ratio(p->sum.s);
		print_ratio(p->sum.alpha);
		printf("  ");
		print_largest(p->sum.part, p->sum.m, HD_TL_PART_WORK);
	}
}

static void print_path(const struct hd_tl_summary *s)
{
	char name[HD_TRACE_SHOWN];

	printf("critical path of %u steps\n", s->nsteps);
	for (uint32_t i = 0; i < s->tl->nprocesses; i++) {
		int64_t sum = 0;
		for (int k = 0; k < HD_TL_NPARTS; k++)
			sum += s->process[i].path[k];
		if (!sum)
			continue;
		printf("%-12s %5.0f %%: ", hd_trace_shown(s->tl->process[i].name, name, sizeof name), 100 *
			share(sum, s->path));
		print_largest(s->process[i].path, s->path, HD_TL_PART_PEER_LATE);
	}
}

static void print_predicted(const struct hd_tl_summary *s)
{
	char name[HD_TRACE_SHOWN];

	if (!s->npredicted)
		return;
	printf("%-12s %-6s %10s %8s %8s %8s %8s  measured / predicted\n", "name", "kind", "bytes from", "n",
		"median", "p10", "p90");
	for (size_t i = 0; i < s->npredicted && i < PREDICTED; i++) {
		const struct hd_tl_predicted *g = &s->predicted[i];
		printf("%-12s %-6s %10" PRIu64 " %8" PRIu64 " %8.2f %8.2f %8.2f\n",
			hd_trace_shown(g->name < s->tl->nnames ? s->tl->name[g->name] : "?", name,
				sizeof name), hd_event_text(g->kind),
			g->size ? UINT64_C(1) << g->size : 0, g->n, g->ratio, g->p10, g->p90);
	}
}

void hd_trace_print_summary(const struct hd_tl_summary *s)
{
	char text[HD_TL_HELD_BYTES], shown[HD_TL_HELD_BYTES];

	print_breakdown(s);
	print_path(s);
	print_predicted(s);
	if (s->orders.violations)
		printf("order: %" PRIu64 " times a transfer overtook a more urgent one, of %" PRIu64
			" transfers\n", s->orders.violations, s->orders.transfers);
	for (uint32_t p = 0; p < s->tl->nprocesses; p++)
		if (s->process[p].redone)
			printf("done again after a loss: %.3f ms of %s\n", (double)s->process[p].redone / 1e6,
				hd_trace_shown(s->tl->process[p].name, shown, sizeof shown));
	if (s->nunmatched)
		printf("of %" PRIu64 " waits for transfers %" PRIu64 " have no recorded cause\n", s->nwaits,
			s->nunmatched);
	if (s->tl->nlost)
		printf("lost: %" PRIu64 " events were overwritten before they were read\n", s->tl->nlost);
	for (uint32_t p = 0; p < s->tl->nprocesses; p++)
		if (!s->tl->process[p].aligned)
			printf("not aligned: %s; nothing of it is compared with others\n",
				hd_trace_shown(s->tl->process[p].name, shown, sizeof shown));
	if (fabs(replay_error(s)) > 0.05)
		printf("replay error %.0f %%: what if is as far off\n", 100 * replay_error(s));
	hd_tl_held(s, text);
	hd_trace_shown(text, shown, sizeof shown);
	printf("%s\n", shown[0] ? shown : s->stragglers.nsteps ? "nothing holds it back" :
		"nothing holds it back by itself; a straggler is looked for among two workers and more, "
		"over five steps and more");
}
