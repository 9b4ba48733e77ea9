/* A timeline as NDJSON: one object for each step that a process ended. */
#include "base/json_writer.h"
#include "timeline/write_int.h"

static const struct hd_tl_process *process_of(const struct hd_timeline *t, const struct hd_tl_step *s)
{
	return &t->process[s->process];
}

/* ns of the step that its process's lanes of a kind waited or computed, summed over the lanes; steps of a
 * process are sorted, and so are a lane's events: each lane is walked once. */
struct sums { uint64_t op, wait, transfer; };

static enum hd_err sum_steps(const struct hd_timeline *t, struct hd_arena *arena, struct sums **sums,
	struct hd_diag *diag)
{
	*sums = hd_arena_take(arena, t->nsteps ? t->nsteps : 1, sizeof **sums);
	if (!*sums)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the sums of %u steps", t->nsteps);
	for (uint64_t i = 0; i < t->nevents; i++) {
		const struct hd_tl_event *e = &t->event[i];
		uint64_t lasts = (uint64_t)(e->t1 - e->t0);
		if (e->step == HD_TL_NONE)
			continue;
		struct sums *s = *sums + e->step;
		s->op += e->kind == HD_EVENT_OP ? lasts : 0;
		s->wait += e->kind == HD_EVENT_WAIT ? lasts : 0;
		s->transfer += e->kind == HD_EVENT_SEND || e->kind == HD_EVENT_RECV ? lasts : 0;
	}
	return HD_OK;
}

enum hd_err hd_tl_write_steps(const struct hd_timeline *timeline, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_tl_out *out = hd_tl_out_new(sink, arena, diag);
	struct sums *sums;

	if (!out || sum_steps(timeline, arena, &sums, diag))
		return HD_E_NOMEM;
	for (uint32_t i = 0; i < timeline->nsteps && !out->err; i++) {
		const struct hd_tl_step *s = &timeline->step[i];
		const struct hd_tl_process *p = process_of(timeline, s);
		char line[HD_TL_ESCAPED * HD_TL_NAME_MAX + 512], fit[HD_TL_NAME_MAX + 1];
		struct hd_text text;
		struct hd_json_writer json;

		hd_text_fixed(&text, line, sizeof line);
		hd_json_writer_init(&json, &text);
		hd_tl_name_fit(p->name, fit);
		hd_json_open_object(&json, NULL);
		hd_json_put_i64(&json, "step", (int64_t)s->number);
		hd_json_put_text(&json, "process", fit);
		if (p->worker != HD_TL_NONE)
			hd_json_put_i64(&json, "worker", p->worker);
		hd_json_put_bool(&json, "committed", s->committed);
		hd_json_put_i64(&json, "begin_ns", s->begin - timeline->begin);
		hd_json_put_i64(&json, "step_ns", s->end - s->begin);
		hd_json_put_i64(&json, "op_ns", (int64_t)sums[i].op);
		hd_json_put_i64(&json, "wait_ns", (int64_t)sums[i].wait);
		hd_json_put_i64(&json, "transfer_ns", (int64_t)sums[i].transfer);
		hd_json_put_i64(&json, "error_ns", p->error_ns);
		hd_json_put_bool(&json, "aligned", p->aligned);
		hd_json_close(&json);
		hd_text_add(&text, "\n");
		hd_tl_out_put(out, text.at, text.len);
	}
	return hd_tl_out_end(out);
}
