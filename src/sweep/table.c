#include "sweep/table.h"

#include <math.h>

#define ROWS(struct_, list, rows) \
	static const struct hd_fields_row rows[] = { list };
#define X(...) HD_FIELDS_ROW(struct hd_sweep_rung, __VA_ARGS__)
ROWS(struct hd_sweep_rung, HD_SWEEP_RUNG_FIELDS(X), rung_rows)
#undef X
const struct hd_fields hd_sweep_rung_fields = HD_FIELDS("rung", "what a trial reported", struct hd_sweep_rung,
	rung_rows);
#define X(...) HD_FIELDS_ROW(struct hd_sweep_key, __VA_ARGS__)
ROWS(struct hd_sweep_key, HD_SWEEP_KEY_FIELDS(X), key_rows)
#undef X
const struct hd_fields hd_sweep_key_fields = HD_FIELDS("key", "a key of the space", struct hd_sweep_key,
	key_rows);
#define X(...) HD_FIELDS_ROW(struct hd_sweep_row, __VA_ARGS__)
ROWS(struct hd_sweep_row, HD_SWEEP_ROW_FIELDS(X), row_rows)
#undef X
const struct hd_fields hd_sweep_row_fields = HD_FIELDS("trial", "a trial of a sweep", struct hd_sweep_row,
	row_rows);
#define X(...) HD_FIELDS_ROW(struct hd_sweep_table, __VA_ARGS__)
ROWS(struct hd_sweep_table, HD_SWEEP_TABLE_FIELDS(X), table_rows)
#undef X
const struct hd_fields hd_sweep_table_fields = HD_FIELDS("sweep", "a sweep and its trials",
	struct hd_sweep_table, table_rows);

static bool fill_values(struct hd_sweep_row *row, const struct hd_sweep *s, uint32_t trial,
	struct hd_arena *arena)
{
	const char **set = hd_arena_take(arena, s->naxes, sizeof *set);
	struct hd_text all;

	hd_text_init(&all, arena);
	for (uint32_t a = 0; set && a < s->naxes; a++) {
		struct hd_sweep_value room;
		struct hd_text one;
		hd_text_init(&one, arena);
		hd_text_addf(&one, "%s=%s", s->axis[a].key, hd_sweep_value(s, trial, a, &room));
		if (one.full)
			return false;
		set[a] = one.at;
		hd_text_addf(&all, "%s%s", a ? " " : "", one.at);
	}
	if (!set || all.full)
		return false;
	row->set = (struct hd_fields_texts){ set, s->naxes };
	row->values = all.at;
	return true;
}

static bool fill_row(struct hd_sweep_row *row, const struct hd_sweep *s, const struct hd_trials *t,
	uint32_t i,
	struct hd_arena *arena)
{
	const struct hd_trial *of = &t->trial[i];
	struct hd_sweep_rung *rung = hd_arena_take(arena, of->reached + 1u, sizeof *rung);

	for (uint32_t k = 0; rung && k < of->reached; k++)
		rung[k] = (struct hd_sweep_rung){ (int64_t)t->rung[k], of->metric[k] };
	*row = (struct hd_sweep_row){ .trial = i, .state = hd_trial_state_name(of->state),
		.steps = (int64_t)of->step, .metric = of->reached ? of->metric[of->reached - 1] : NAN,
		.rungs = { .at = rung, .n = of->reached }, .digest = of->digest, .why = of->why };
	return rung && fill_values(row, s, i, arena);
}

static const char *const kind_names[] = {
#define X(id, word, numbers, whole, about) word,
	HD_SWEEP_AXIS_KINDS(X)
#undef X
};

static struct hd_sweep_key *make_keys(const struct hd_sweep *s, struct hd_arena *arena)
{
	struct hd_sweep_key *key = hd_arena_take(arena, s->naxes, sizeof *key);

	for (uint32_t a = 0; key && a < s->naxes; a++) {
		const struct hd_sweep_axis *axis = &s->axis[a];
		const bool choice = axis->kind == HD_SWEEP_AXIS_CHOICE;
		key[a] = (struct hd_sweep_key){ .key = axis->key,
			.kind = choice ? "choice" : kind_names[axis->kind],
			.from = axis->from, .to = axis->to,
			.values = { axis->choice, choice ? axis->n : 0 } };
	}
	return key;
}

enum hd_err hd_sweep_table_make(struct hd_sweep_table *table, const char *name, const struct hd_sweep *s,
	const struct hd_trials *t, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_sweep_row *row = hd_arena_take(arena, t->ntrials, sizeof *row);
	const struct hd_sweep_key *key = make_keys(s, arena);
	const uint32_t best = hd_trials_best(t);

	for (uint32_t i = 0; row && i < t->ntrials; i++)
		if (!fill_row(&row[i], s, t, i, arena))
			row = NULL;
	if (!row || !key)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a table of %u trials", t->ntrials);
	*table = (struct hd_sweep_table){ .name = name, .method = hd_sweep_method_name(s->method),
		.metric = hd_sweep_metric_name(s->metric), .goal = s->max ? "max" : "min",
		.over = hd_trials_is_over(t), .best = best == UINT32_MAX ? -1 : (int64_t)best,
		.steps = (int64_t)hd_trials_steps(t),
		.exhaustive = (int64_t)(t->rung[t->nrungs - 1] * t->ntrials),
		.keys = { .at = key, .n = s->naxes }, .trials = { .at = row, .n = t->ntrials } };
	return HD_OK;
}

void hd_sweep_table_json(const struct hd_sweep_table *table, struct hd_text *text)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, text);
	hd_fields_put_object(&hd_sweep_table_fields, 0, table, NULL, &w);
	hd_text_add(text, "\n");
}

void hd_sweep_table_text(const struct hd_sweep_table *table, struct hd_text *text)
{
	const struct hd_sweep_row *row = table->trials.at;

	hd_fields_head(&hd_sweep_row_fields, text);
	for (uint32_t i = 0; i < table->trials.n; i++)
		hd_fields_line(&hd_sweep_row_fields, &row[i], text);
}
