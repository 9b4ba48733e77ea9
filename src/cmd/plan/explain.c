#include "cmd/plan/explain.h"

#include <string.h>

#include "pipeline/redundancy.h"

enum { PARTS_SHOWN = 24, WAITS_SHOWN = 4, MEMBERS_SHOWN = 12 };

static double ms(const struct hd_explained *e, int64_t ticks) { return hd_sim_plan_s(e->sim, ticks) * 1e3; }

/* ---- making */

static enum hd_err with_shadows(struct hd_cmd *cmd, struct hd_planning *p, enum hd_redundancy mode,
	struct hd_explained *e)
{
	const struct hd_job_plan *plan = &p->plan;
	const struct hd_sim_setting set = { .costs = &plan->costs, .cluster = &p->in.cluster,
		.device = plan->device, .transport = HD_TRANSPORT_BUFFERED, .spans = true };
	const struct hd_redundancy_ask ask = { .mode = mode, .setting = &set };
	struct hd_schedule with;
	struct hd_diag why = { "" };
	enum hd_err err = hd_redundancy_add(&with, &plan->schedule, &ask, &cmd->arena, &why);

	if (err == HD_E_INVAL) {
		char *text = hd_arena_text(&cmd->arena, why.text, strlen(why.text));
		e->without = text ? text : "";
		return HD_OK;
	}
	err = err ? hd_fail(&cmd->diag, err, "%s", why.text) : hd_sim_plan(&e->with, &with, &set, &cmd->arena,
		&cmd->diag);
	if (err)
		return err;
	e->sim = &e->with;
	e->shadows = hd_redundancy_names[mode];
	return HD_OK;
}

/* Sums within a group are a part of F, B, I and R: of each as large as of the cost. */
static double sums_in(const struct hd_stage_cost *c, const struct hd_ins *ins)
{
	const int64_t of = ins->op == HD_INS_F ? c->f : ins->op == HD_INS_I ? c->i : ins->op == HD_INS_R ?
		c->r : ins->op == HD_INS_B ? c->i + c->w : 0;

	return of ? (double)c->group / (double)of : 0;
}

static double group_ticks(const struct hd_planning *p, const struct hd_explained *e)
{
	double ticks = 0;

	for (uint32_t k = 0; k < e->why.nparts; k++) {
		const struct hd_path_part *part = &e->why.part[k];
		const struct hd_ilist *list = &e->sim->ran.list[part->rank];
		for (uint32_t i = part->first; part->kind == HD_PATH_WORK && i < part->end; i++) {
			const struct hd_sim_span *span = &e->sim->span[part->rank][i];
			if (hd_ins_uses(list->at[i].op, 's') && list->at[i].stage < p->plan.costs.nstages)
				ticks += sums_in(&p->plan.costs.stage[list->at[i].stage], &list->at[i]) *
					(double)(span->end - span->start);
		}
	}
	return ticks;
}

enum hd_err hd_cmd_explain(struct hd_cmd *cmd, struct hd_planning *p, struct hd_explained *e)
{
	/* the words of the key begin with the modes, in their order */
	const int64_t mode = hd_job_int(&p->in.job, HD_JOB_REDUNDANCY);
	enum hd_err err = HD_OK;

	*e = (struct hd_explained){ .sim = &p->plan.sim };
	if (mode != HD_REDUNDANCY_NONE && mode < HD_NREDUNDANCIES)
		err = with_shadows(cmd, p, (enum hd_redundancy)mode, e);
	err = err ? err : hd_sim_reasons(&e->why, e->sim, &cmd->arena, &cmd->diag);
	if (!err)
		e->group_ticks = group_ticks(p, e);
	return err;
}

/* ---- meetings of one op and stage, by the same ranks: buckets of it are one */

struct meetings { const struct hd_sim_meeting *first; uint32_t n; int64_t bytes, start, end, took; };

static bool is_like(const struct hd_sim_meeting *a, const struct hd_sim_meeting *b)
{
	return a->op == b->op && a->stage == b->stage && a->nmembers == b->nmembers &&
		!memcmp(a->member, b->member, a->nmembers * sizeof *a->member);
}

/* The next group from *at on; n 0: no more. Those whose like stands before are in its group. */
static struct meetings next_meetings(const struct hd_sim_plan *sim, uint32_t *at)
{
	struct meetings m = { 0 };

	for (; *at < sim->nmeetings && !m.n; ++*at) {
		const struct hd_sim_meeting *one = &sim->meeting[*at];
		uint32_t before = 0;
		while (before < *at && !is_like(&sim->meeting[before], one))
			before++;
		if (before < *at)
			continue;
		m = (struct meetings){ .first = one, .start = one->start, .end = one->end };
		for (uint32_t i = *at; i < sim->nmeetings; i++) {
			const struct hd_sim_meeting *k = &sim->meeting[i];
			if (!is_like(k, one))
				continue;
			m.n++;
			m.bytes += k->bytes;
			m.took += k->end - k->start;
			m.start = k->start < m.start ? k->start : m.start;
			m.end = k->end > m.end ? k->end : m.end;
		}
	}
	return m;
}

/* ---- sums sent to shadows: of a stage from one rank to another, buckets of it are one */

struct shipped { uint32_t n, stage, from, to; int64_t start, end; };

/* The next from (*rank, *at) on; n 0: no more. A list has those of a stage one after the other. */
static struct shipped next_shipped(const struct hd_sim_plan *sim, uint32_t *rank, uint32_t *at)
{
	struct shipped s = { 0 };

	for (; *rank < sim->ran.nranks; ++*rank, *at = 0)
		for (; *at < sim->ran.list[*rank].len; ++*at) {
			const struct hd_ins *ins = &sim->ran.list[*rank].at[*at];
			const struct hd_sim_span *span = &sim->span[*rank][*at];
			if (ins->op != HD_INS_SHIP)
				continue;
			if (s.n && (s.stage != ins->stage || s.to != ins->peer))
				return s;
			if (!s.n++)
				s = (struct shipped){ 1, ins->stage, *rank, ins->peer, span->start,
					span->end };
			s.end = span->end > s.end ? span->end : s.end;
			if (*at + 1 == sim->ran.list[*rank].len || ins[1].op != HD_INS_SHIP) {
				++*at;
				return s;
			}
		}
	return s;
}

/* ---- text */

static void print_ranks_of(const struct hd_sim_meeting *m)
{
	for (uint32_t i = 0; i < m->nmembers && i < MEMBERS_SHOWN; i++)
		printf("%s%u", i ? "," : "", m->member[i]);
	if (m->nmembers > MEMBERS_SHOWN)
		printf(",... (%u)", m->nmembers);
}

static void print_word(const struct hd_explained *e, uint32_t rank, uint32_t i)
{
	char word[48];
	struct hd_text text;

	hd_text_fixed(&text, word, sizeof word);
	if (i < e->sim->ran.list[rank].len)
		hd_ins_print(&e->sim->ran.list[rank].at[i], &text);
	printf("%s", i < e->sim->ran.list[rank].len ? word : "its end");
}

static void print_part(const struct hd_explained *e, const struct hd_path_part *part)
{
	printf("path      %10.4f ms ", ms(e, part->until - part->start));
	switch (part->kind) {
	case HD_PATH_WORK:
		printf("rank %u works, from ", part->rank);
		print_word(e, part->rank, part->first);
		printf(" on");
		break;
	case HD_PATH_TRANSFER:
		printf("under way from rank %u to rank %u, for ", part->from, part->rank);
		print_word(e, part->rank, part->first);
		break;
	case HD_PATH_MEETING: {
		const struct hd_sim_meeting *m = &e->sim->meeting[part->meeting];
		printf("%s of stage %u, ranks ", hd_ins_row(m->op)->text, m->stage);
		print_ranks_of(m);
		printf("; rank %u came last", m->last);
		break;
	}
	case HD_PATH_HOST:
		printf("rank %u between device and host", part->rank);
		break;
	}
	printf("\n");
}

static void print_terms(const struct hd_explained *e)
{
	char room[32];
	const char *follows = ": ";

	printf("critical  %.4f ms from the beginning to the end", ms(e, e->sim->makespan));
	for (uint32_t t = 0; t < HD_TERMS; t++)
		if (e->why.term[t]) {
			printf("%s%s %.4f", follows, hd_term_name(t, room), ms(e, e->why.term[t]));
			follows = ", ";
		}
	if (e->group_ticks > 0)
		printf("; of it %.4f sums within tensor groups", ms(e, (int64_t)e->group_ticks));
	printf("\n");
}

static void print_wait(const struct hd_explained *e, const struct hd_rank_wait *w)
{
	printf("%.4f ms %s for ", ms(e, w->ticks), hd_idle_names[w->why]);
	if (w->op)
		printf("%s, for which rank %u came last", hd_ins_row(w->op)->text, w->of);
	else if (w->of == HD_NO_RANK)
		printf("the host");
	else
		printf("rank %u", w->of);
}

static void print_waits(const struct hd_explained *e)
{
	for (uint32_t i = 0, k; i < e->why.nwaits; i = k) {
		for (k = i; k < e->why.nwaits && e->why.wait[k].rank == e->why.wait[i].rank; k++) {
			if (k - i >= WAITS_SHOWN)
				continue;
			printf(k == i ? "waits     rank %u: " : "; ", e->why.wait[i].rank);
			print_wait(e, &e->why.wait[k]);
		}
		printf(k - i > WAITS_SHOWN ? "; and %u more\n" : "\n", k - i - WAITS_SHOWN);
	}
}

static void print_exchange(const struct hd_explained *e)
{
	struct meetings m;

	for (uint32_t at = 0; (m = next_meetings(e->sim, &at)).n;) {
		printf("exchange  %s of stage %u, ranks ", hd_ins_row(m.first->op)->text, m.first->stage);
		print_ranks_of(m.first);
		printf(": %.3f MiB each, %.4f ms, from %.4f to %.4f ms%s\n", (double)m.bytes * 0x1p-20,
			ms(e, m.took), ms(e, m.start), ms(e, m.end), m.n > 1 ? ", in parts" : "");
	}
}

static void print_shipped(const struct hd_explained *e)
{
	struct shipped s;

	for (uint32_t rank = 0, at = 0; (s = next_shipped(e->sim, &rank, &at)).n;)
		printf("exchange  SHIP of stage %u, rank %u to the shadow at rank %u, from %.4f to %.4f ms\n",
			s.stage, s.from, s.to, ms(e, s.start), ms(e, s.end));
}

static void print_groups(const struct hd_planning *p, const struct hd_explained *e)
{
	for (uint32_t s = 0; s < p->plan.costs.nstages && p->plan.tensor > 1; s++) {
		const struct hd_stage_cost *c = &p->plan.costs.stage[s];
		printf("group     stage %u: %u devices a rank; forward %.4f ms, backward %.4f, of each %.4f "
			"are sums within the group\n", s, p->plan.tensor, ms(e, c->f), ms(e, c->i + c->w),
			ms(e, c->group));
	}
}

static void print_memory(const struct hd_planning *p, const struct hd_explained *e)
{
	const uint32_t tensor = p->plan.tensor > 1 ? p->plan.tensor : 1;

	for (uint32_t r = 0; r < e->sim->ran.nranks; r++) {
		const struct hd_sim_share *rank = &e->sim->rank[r];
		printf("memory    rank %u, device %u", r, p->plan.device[r]);
		if (tensor > 1)
			printf(" to %u, each", p->plan.device[r] + tensor - 1);
		printf(": %.3f MiB", (double)rank->peak * 0x1p-20);
		for (int i = 0; i < HD_NMEMORIES; i++)
			if (rank->at_peak[i])
				printf("%s%s %.3f", i ? ", " : ": ", hd_memory_names[i],
					(double)rank->at_peak[i] * 0x1p-20);
		printf("\n");
	}
}

void hd_cmd_explain_print(const struct hd_planning *p, const struct hd_explained *e)
{
	if (e->without)
		printf("shadows   none: %s\n", e->without);
	if (e->shadows)
		printf("shadows   %s: %.4f ms a step with them, %.4f without; what follows is with them\n",
			e->shadows, ms(e, e->sim->makespan), hd_job_plan_step_s(&p->plan) * 1e3);
	print_terms(e);
	for (uint32_t i = 0; i < e->why.nparts && i < PARTS_SHOWN; i++)
		print_part(e, &e->why.part[i]);
	if (e->why.nparts > PARTS_SHOWN)
		printf("path      and %u parts more (--json has all)\n", e->why.nparts - PARTS_SHOWN);
	print_waits(e);
	print_exchange(e);
	print_shipped(e);
	print_groups(p, e);
	print_memory(p, e);
}

/* ---- JSON */

static void put_s(struct hd_json_writer *w, const char *key, const struct hd_explained *e, int64_t ticks)
{
	hd_json_put_f64(w, key, hd_sim_plan_s(e->sim, ticks));
}

static const char *const kind_names[] = { [HD_PATH_WORK] = "work", [HD_PATH_TRANSFER] = "transfer",
	[HD_PATH_MEETING] = "meeting", [HD_PATH_HOST] = "host" };

static void put_members(struct hd_json_writer *w, const struct hd_sim_meeting *m)
{
	hd_json_put_text(w, "op", hd_ins_row(m->op)->text);
	hd_json_put_i64(w, "stage", m->stage);
	hd_json_open_array(w, "ranks");
	for (uint32_t i = 0; i < m->nmembers; i++)
		hd_json_put_i64(w, NULL, m->member[i]);
	hd_json_close(w);
}

static void put_part(struct hd_json_writer *w, const struct hd_explained *e, const struct hd_path_part *part)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "what", kind_names[part->kind]);
	hd_json_put_i64(w, "rank", part->rank);
	if (part->kind == HD_PATH_TRANSFER)
		hd_json_put_i64(w, "from", part->from);
	if (part->kind == HD_PATH_MEETING)
		put_members(w, &e->sim->meeting[part->meeting]);
	put_s(w, "start_s", e, part->start);
	put_s(w, "end_s", e, part->until);
	hd_json_close(w);
}

static void put_wait(struct hd_json_writer *w, const struct hd_explained *e, const struct hd_rank_wait *k)
{
	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "rank", k->rank);
	hd_json_put_text(w, "why", hd_idle_names[k->why]);
	if (k->of == HD_NO_RANK)
		hd_json_put_null(w, "for_rank");
	else
		hd_json_put_i64(w, "for_rank", k->of);
	hd_json_put_text(w, "for_op", k->op ? hd_ins_row(k->op)->text : "");
	put_s(w, "s", e, k->ticks);
	hd_json_put_i64(w, "times", k->n);
	hd_json_close(w);
}

static void put_exchange(struct hd_json_writer *w, const struct hd_explained *e)
{
	struct meetings m;

	hd_json_open_array(w, "exchange");
	for (uint32_t at = 0; (m = next_meetings(e->sim, &at)).n;) {
		hd_json_open_object(w, NULL);
		put_members(w, m.first);
		hd_json_put_i64(w, "parts", m.n);
		hd_json_put_i64(w, "bytes", m.bytes);
		put_s(w, "s", e, m.took);
		put_s(w, "start_s", e, m.start);
		put_s(w, "end_s", e, m.end);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_shipped(struct hd_json_writer *w, const struct hd_explained *e)
{
	struct shipped s;

	hd_json_open_array(w, "shipped");
	for (uint32_t rank = 0, at = 0; (s = next_shipped(e->sim, &rank, &at)).n;) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "stage", s.stage);
		hd_json_put_i64(w, "from", s.from);
		hd_json_put_i64(w, "to", s.to);
		put_s(w, "start_s", e, s.start);
		put_s(w, "end_s", e, s.end);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_groups(struct hd_json_writer *w, const struct hd_planning *p, const struct hd_explained *e)
{
	hd_json_put_f64(w, "critical_group_s", hd_sim_plan_s(e->sim, (int64_t)e->group_ticks));
	hd_json_open_array(w, "groups");
	for (uint32_t s = 0; s < p->plan.costs.nstages; s++) {
		const struct hd_stage_cost *c = &p->plan.costs.stage[s];
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "stage", s);
		hd_json_put_i64(w, "devices", p->plan.tensor > 1 ? p->plan.tensor : 1);
		put_s(w, "forward_s", e, c->f);
		put_s(w, "backward_s", e, c->i + c->w);
		put_s(w, "sums_s", e, c->group);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_memory(struct hd_json_writer *w, const struct hd_planning *p, const struct hd_explained *e)
{
	hd_json_open_array(w, "memory");
	for (uint32_t r = 0; r < e->sim->ran.nranks; r++) {
		const struct hd_sim_share *rank = &e->sim->rank[r];
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "rank", r);
		hd_json_put_i64(w, "device", p->plan.device[r]);
		hd_json_put_i64(w, "devices", p->plan.tensor > 1 ? p->plan.tensor : 1);
		hd_json_put_i64(w, "bytes", rank->peak);
		for (int i = 0; i < HD_NMEMORIES; i++)
			hd_json_put_i64(w, hd_memory_names[i], rank->at_peak[i]);
		hd_json_close(w);
	}
	hd_json_close(w);
}

void hd_cmd_explain_put(struct hd_json_writer *w, const struct hd_planning *p, const struct hd_explained *e)
{
	char room[32];

	hd_json_open_object(w, "explain");
	hd_json_put_text(w, "shadows", e->shadows ? e->shadows : "none");
	if (e->without)
		hd_json_put_text(w, "without_shadows", e->without);
	else
		hd_json_put_null(w, "without_shadows");
	put_s(w, "step_s", e, e->sim->makespan);
	hd_json_open_object(w, "critical_s");
	for (uint32_t t = 0; t < HD_TERMS; t++)
		if (e->why.term[t])
			put_s(w, hd_term_name(t, room), e, e->why.term[t]);
	hd_json_close(w);
	hd_json_open_array(w, "path");
	for (uint32_t i = 0; i < e->why.nparts; i++)
		put_part(w, e, &e->why.part[i]);
	hd_json_close(w);
	hd_json_open_array(w, "waits");
	for (uint32_t i = 0; i < e->why.nwaits; i++)
		put_wait(w, e, &e->why.wait[i]);
	hd_json_close(w);
	put_exchange(w, e);
	put_shipped(w, e);
	put_groups(w, p, e);
	put_memory(w, p, e);
	hd_json_close(w);
}
