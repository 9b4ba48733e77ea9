#include "graph/published_int.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/num.h"
#include "graph/models/rope.h"

/* One call. */
struct config_writing {
	const struct hd_published_type *type;
	const struct hd_model_row *row;
	const struct hd_model_value *value;
	struct hd_json_writer w;
};

static int find(const struct config_writing *w, const char *argument)
{
	for (int i = 0; w->row->param[i].name; i++)
		if (!strcmp(w->row->param[i].name, argument))
			return i;
	return -1;
}

static int64_t number_of(const struct config_writing *w, const char *argument)
{
	int at = find(w, argument);

	return at < 0 ? 0 : w->value[at].n;
}

static const char *word_of(const struct config_writing *w, const char *argument)
{
	int at = find(w, argument);

	return at < 0 ? "" : w->value[at].word;
}

/* ---- what an argument of 0 stands for */

static int64_t as_many_heads(const struct config_writing *w) { return number_of(w, "heads"); }
static int64_t share_of_width(const struct config_writing *w) { return number_of(w, "width") / number_of(w,
	"heads"); }

static int64_t inside(const struct config_writing *w)
{
	const int64_t width = number_of(w, "width");

	return find(w, "kv_heads") >= 0 ? (8 * width / 3 + 31) / 32 * 32 : 4 * width;
}

static int64_t positions(const struct config_writing *w) { return number_of(w, "context"); }
static int64_t high(const struct config_writing *w) { return strcmp(word_of(w, "rope_kind"),
	"llama3") ? 32 : 4; }

static const struct { const char *argument; int64_t (*of)(const struct config_writing *w); } zeros[] = {
	{ "kv_heads", as_many_heads }, { "head_dim", share_of_width }, { "query", share_of_width },
	{ "hidden", inside }, { "rope_original", positions }, { "rope_high", high },
};

/* ---- values */

/* As Python writes a float: the library's classes tell 30.0 from 30. What may be either is an integer
 * there. */
static void put_real(struct config_writing *w, const char *key, double real)
{
	const size_t before = w->w.text->len;

	if (key && !strcmp(key, "query_pre_attn_scalar") && real == (double)(int64_t)real) {
		hd_json_put_i64(&w->w, key, (int64_t)real);
		return;
	}
	hd_json_put_f64(&w->w, key, real);
	if (!w->w.text->full && !strpbrk(w->w.text->at + before + (key ? strlen(key) + 2 : 0), ".e"))
		hd_text_add(w->w.text, ".0");
}

static void put_value(struct config_writing *w, const char *key, int at, const char *null)
{
	const struct hd_model_param *p = &w->row->param[at];
	const struct hd_model_value *v = &w->value[at];
	int64_t n = v->n;
	double real = v->real;

	for (size_t i = 0; i < sizeof zeros / sizeof *zeros && n == 0 && real == 0; i++)
		if (!strcmp(zeros[i].argument, p->name)) {
			n = zeros[i].of(w);
			real = (double)n;
		}
	switch (p->kind) {
	case HD_ARG_INT:
		if (null && (!strcmp(null, "0") ? n == 0 : !strcmp(null, "-1") && n == -1))
			hd_json_put_null(&w->w, key);
		else
			hd_json_put_i64(&w->w, key, n);
		return;
	case HD_ARG_REAL:
		if (null && !strcmp(null, "0") && real == 0)
			hd_json_put_null(&w->w, key);
		else
			put_real(w, key, real);
		return;
	case HD_ARG_WORD:
		if (!strcmp(v->word, "auto"))     /* what the library makes of other keys */
			return;
		if (!strcmp(v->word, "true") || !strcmp(v->word, "false"))
			hd_json_put_bool(&w->w, key, *v->word == 't');
		else
			hd_json_put_text(&w->w, key, v->word);
		return;
	case HD_ARG_SET:                  /* no key of theirs is one */
		return;
	case HD_ARG_LIST: case HD_ARG_REALS:
		hd_json_open_array(&w->w, key);
		for (uint32_t i = 0; i < v->nlist; i++)
			if (p->kind == HD_ARG_LIST)
				hd_json_put_i64(&w->w, NULL, v->list[i]);
			else
				put_real(w, NULL, v->reals[i]);
		hd_json_close(&w->w);
		return;
	}
}

static void write_arg(struct config_writing *w, const struct hd_published_key *key)
{
	int at = find(w, key->what);

	/* samples may be shorter than the table */
	if (at >= 0 && !strcmp(key->what, "context") && number_of(w, "positions"))
		at = find(w, "positions");
	if (at >= 0)
		put_value(w, key->name, at, key->null);
}

/* The first word of theirs that means ours. */
static void write_word(struct config_writing *w, const struct hd_published_key *key)
{
	const char *at = strchr(key->what, ':') + 1, *eq;
	char argument[32] = "", theirs[48] = "";

	memcpy(argument, key->what, (size_t)(at - key->what) - 1);
	const char *ours = word_of(w, argument);
	for (; *at; at += strspn(at, "|")) {
		size_t whole = strcspn(at, "|");
		eq = at + strcspn(at, "=");
		if ((size_t)(at + whole - eq) - 1 == strlen(ours) && !strncmp(eq + 1, ours, strlen(ours))) {
			memcpy(theirs, at, (size_t)(eq - at));
			break;
		}
		at += whole;
	}
	if (!strcmp(theirs, "true") || !strcmp(theirs, "false"))
		hd_json_put_bool(&w->w, key->name, *theirs == 't');
	else if (*theirs)
		hd_json_put_text(&w->w, key->name, theirs);
}

static void write_number(struct config_writing *w, const struct hd_published_key *key)
{
	double x = 0;

	if (!hd_num_f64(key->what, 0, 1, &x, NULL))
		put_real(w, key->name, x);
}

static void write_window(struct config_writing *w, const struct hd_published_key *key)
{
	hd_json_put_bool(&w->w, "use_sliding_window", number_of(w, "window") > 0);
	write_arg(w, key);
}

static void write_balance(struct config_writing *w, const struct hd_published_key *key)
{
	const int at = find(w, key->what);
	const bool counts = at >= 0 && w->value[at].real > 0;

	hd_json_put_bool(&w->w, "output_router_logits", counts);
	if (counts)
		put_real(w, key->name, w->value[at].real);
}

static void write_layers(struct config_writing *w, const struct hd_published_key *key)
{
	const int64_t window = number_of(w, "window"), from = number_of(w, "window_from"),
		every = number_of(w, "window_every");

	hd_json_open_array(&w->w, key->name);
	for (int64_t i = 0; i < number_of(w, "layers"); i++)
		hd_json_put_text(&w->w, NULL, window && i >= from && (i - from) % every == 0 ?
			"sliding_attention" : "full_attention");
	hd_json_close(&w->w);
}

static void write_classes(struct config_writing *w, const struct hd_published_key *key)
{
	char label[32], n[24];

	if (strcmp(key->name, "id2label") != 0 || (find(w, "head") >= 0 && strcmp(word_of(w, "head"),
		"cls") != 0))
		return;
	for (int turn = 0; turn < 2; turn++) {
		hd_json_open_object(&w->w, turn ? "label2id" : "id2label");
		for (int64_t i = 0; i < number_of(w, "classes"); i++) {
			snprintf(label, sizeof label, "LABEL_%lld", (long long)i);
			snprintf(n, sizeof n, "%lld", (long long)i);
			if (turn)
				hd_json_put_i64(&w->w, label, i);
			else
				hd_json_put_text(&w->w, n, label);
		}
		hd_json_close(&w->w);
	}
}

static void write_must(struct config_writing *w, const struct hd_published_key *key)
{
	hd_json_put_bool(&w->w, key->name, *key->what == 't');
}

/* Not the argument of the name: a job may have a mask in its place. */
static void write_pad(struct config_writing *w, const struct hd_published_key *key)
{
	const int64_t offset = number_of(w, "offset");

	if (offset)
		hd_json_put_i64(&w->w, key->name, offset - 1);
}

static void write_places(struct config_writing *w, const struct hd_published_key *key)
{
	const int64_t rows = number_of(w, key->what);

	hd_json_put_i64(&w->w, key->name, rows ? rows : number_of(w, "context") + number_of(w, "offset"));
}

/* ---- keys: one function for each of the reader's */

static const struct { hd_take *take; void (*write)(struct config_writing *w,
	const struct hd_published_key *key); }
	writes[] = {
	{ hd_take_arg, write_arg }, { hd_take_inner, write_arg }, { hd_take_head_dim, write_arg },
	{ hd_take_reals, write_arg }, { hd_take_word, write_word }, { hd_take_note, write_number },
	{ hd_take_window, write_window }, { hd_take_window_from, write_arg }, { hd_take_layers, write_layers },
	{ hd_take_balance, write_balance },
	{ hd_take_classes, write_classes }, { hd_take_labels, write_classes },
	{ hd_take_tied_head, write_must }, { hd_take_pad, write_pad }, { hd_take_places, write_places },
};

static void write_key(struct config_writing *w, const struct hd_published_key *key)
{
	for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
		if (key->take == writes[i].take) {
			writes[i].write(w, key);
			return;
		}
}

/* What a kind of stretching does not read would be warned of. */
static bool counts(const struct config_writing *w, const struct hd_published_key *key)
{
	static const struct { const char *kind, *names; } of[] = {
		{ "linear", " factor " }, { "dynamic", " factor " },
		{ "yarn", " factor original_max_position_embeddings attention_factor beta_slow beta_fast truncate " },
		{ "llama3", " factor original_max_position_embeddings low_freq_factor high_freq_factor " },
		{ "longrope",
		  " factor original_max_position_embeddings attention_factor short_factor long_factor " },
	};
	const char *kind = word_of(w, "rope_kind");
	char name[64];

	if (!strcmp(key->name, "rope_theta") || !strcmp(key->name, "rope_type") ||
		!strcmp(key->name, "partial_rotary_factor"))
		return true;
	snprintf(name, sizeof name, " %s ", key->name);
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		if (!strcmp(of[i].kind, kind) && strstr(of[i].names, name)) {
			int at = find(w, key->what);
			/* 0: what the library makes of the others */
			return strcmp(key->what, "rope_scale") != 0 || w->value[at].real != 0;
		}
	return false;
}

/* rope_parameters is of version 5; version 4 reads rope_theta and rope_scaling. */
static void write_table(struct config_writing *w, const struct hd_published_key *table)
{
	if (!strcmp(table->name, "rope_scaling") && !strcmp(word_of(w, "rope_kind"), "plain"))
		return;
	hd_json_open_object(&w->w, table->name);
	for (const struct hd_published_key *key = w->type->key; key->name; key++)
		if (key->in && !strcmp(key->in, table->name) && counts(w, key))
			write_key(w, key);
	hd_json_close(&w->w);
}

static void write_all(struct config_writing *w, struct hd_text *out)
{
	const struct hd_published_head *head = w->type->head;
	const char *ours = word_of(w, "head");

	while (*ours && head[1].architecture && (!head->head || strcmp(head->head, ours) != 0))
		head++;
	hd_json_writer_init(&w->w, out);
	hd_json_open_object(&w->w, NULL);
	hd_json_open_array(&w->w, "architectures");
	hd_json_put_text(&w->w, NULL, head->architecture);
	hd_json_close(&w->w);
	hd_json_put_text(&w->w, "model_type", w->type->name);
	hd_json_put_text(&w->w, "torch_dtype", "float32");
	if (find(w, "decoder_layers") >= 0)
		hd_json_put_bool(&w->w, "is_encoder_decoder", true);
	for (const struct hd_published_key *key = w->type->key; key->name; key++)
		if (key->take == hd_take_table)
			write_table(w, key);
		else if (key->take == hd_take_any && !strcmp(key->name, "pad_token_id"))
			hd_json_put_null(&w->w, key->name);    /* no row of the table is spared by training */
		else if (!key->in)
			write_key(w, key);
	hd_json_close(&w->w);
	hd_text_add(out, "\n");
}

enum hd_err hd_published_write(const char *model, const struct hd_model_value *value, struct hd_text *out,
	struct hd_diag *diag)
{
	struct config_writing w = { .type = hd_published_types, .value = value };
	enum hd_err err = hd_model_find(model, &w.row, diag);

	while (!err && w.type->name && strcmp(w.type->model, model) != 0)
		w.type++;
	if (!err && !w.type->name)
		err = hd_fail(diag, HD_E_INVAL, "builtin:%s is no published model: it has no config.json; "
			"give -o FILE.safetensors", model);
	if (err)
		return err;
	write_all(&w, out);
	return out->full ? hd_fail(diag, HD_E_NOMEM, "no memory for config.json") : HD_OK;
}
