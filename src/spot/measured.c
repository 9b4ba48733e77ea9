#include "spot/measured.h"

#include <math.h>

void hd_spot_measured_step(struct hd_spot_measured *m, uint32_t pipelines, uint64_t us)
{
	if (pipelines < 1 || pipelines > HD_SPOT_PIPELINES)
		return;
	m->on[pipelines - 1].n++;
	m->on[pipelines - 1].us += us;
}

static bool seen(const struct hd_spot_measured *m, int64_t d)
{
	return d >= 1 && d <= HD_SPOT_PIPELINES && m->on[d - 1].n >= HD_SPOT_SEEN;
}

/* 0: none was. */
static uint32_t nearest(const struct hd_spot_measured *m, uint32_t d)
{
	for (int64_t off = 0; off < HD_SPOT_PIPELINES; off++) {
		if (seen(m, d - off))
			return (uint32_t)(d - off);
		if (seen(m, d + off))
			return (uint32_t)(d + off);
	}
	return 0;
}

bool hd_spot_measured_steps(struct hd_spot_model *model, const struct hd_spot_measured *m, uint32_t most,
	uint32_t nvns, double scale)
{
	for (uint32_t d = 1; d <= most; d++) {
		const uint32_t by = nearest(m, d);
		if (!by)
			return false;
		const double ms = (double)m->on[by - 1].us / (double)m->on[by - 1].n / 1000 * scale,
			vns = (double)((nvns + d - 1) / d) / (double)((nvns + by - 1) / by);
		const int64_t whole = llround(ms * vns);
		model->step_ms[d - 1] = whole > 1 ? whole : 1;
	}
	model->npipelines = most;
	return most > 0;
}

void hd_spot_model_put(const struct hd_spot_model *m, struct hd_json_writer *w)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "name", m->name);
	hd_json_put_i64(w, "stages", m->stages);
	hd_json_put_i64(w, "batch", m->batch);
	hd_json_put_i64(w, "local_ms", m->local_ms);
	hd_json_open_array(w, "step_ms");
	for (uint32_t d = 0; d < m->npipelines; d++)
		hd_json_put_i64(w, NULL, m->step_ms[d]);
	hd_json_close(w);
	hd_json_open_object(w, "on_demand");
	hd_json_put_i64(w, "nodes", m->on_demand.nodes);
	hd_json_put_i64(w, "step_ms", m->on_demand.step_ms);
	hd_json_put_f64(w, "usd_h", (double)m->on_demand.nano_usd_h / 1e9);
	hd_json_close(w);
	if (m->wanted)
		hd_json_put_i64(w, "wanted", m->wanted);
	hd_json_put_f64(w, "usd_h", (double)m->nano_usd_h / 1e9);
	hd_json_put_f64(w, "redundant", (double)m->redundant_ppm / HD_SPOT_PPM);
	hd_json_put_f64(w, "bubble", (double)m->bubble_ppm / HD_SPOT_PPM);
	hd_json_put_i64(w, "boot_ms", m->boot_ms);
	hd_json_put_i64(w, "rendezvous_ms", m->rendezvous_ms);
	hd_json_put_i64(w, "save_ms", m->save_ms);
	hd_json_put_i64(w, "reload_ms", m->reload_ms);
	hd_json_put_i64(w, "pause_ms", m->pause_ms);
	hd_json_put_i64(w, "end_ms", m->end_ms);
	hd_json_put_f64(w, "announced", (double)m->announced_ppm / HD_SPOT_PPM);
	hd_json_put_i64(w, "lead_ms", m->lead_ms);
	hd_json_close(w);
}

enum hd_err hd_spot_model_text(const struct hd_spot_model *m, struct hd_arena *arena, struct hd_text *text,
	struct hd_diag *diag)
{
	struct hd_spot_model again;
	const struct hd_json *json;
	struct hd_json_writer w;

	hd_text_init(text, arena);
	hd_json_writer_init(&w, text);
	hd_spot_model_put(m, &w);
	if (text->full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for what was measured");
	enum hd_err err = hd_json_parse(arena, "the model", text->at, text->len, &json, diag);
	return err ? err : hd_spot_model_read(&again, json, diag);
}
