#include "graph/published_int.h"

#include <string.h>

static bool is_known(const struct hd_published_key *key, const char *name, const char *in)
{
	for (; key->name; key++)
		if (!strcmp(key->name, name) && (in ? key->in && !strcmp(key->in, in) : !key->in))
			return true;
	return false;
}

/* A type's own row of a key counts before that of every type. */
static enum hd_err take_keys(struct hd_config_reading *r, const struct hd_published_key *key)
{
	const bool common = key == hd_published_common;
	enum hd_err err = HD_OK;

	for (; key->name && !err; key++) {
		if (common && is_known(r->type->key, key->name, key->in))
			continue;
		const struct hd_json *table = key->in ? hd_json_find(r->json, key->in) : r->json;
		err = key->take(r, key, table ? hd_json_find(table, key->name) : NULL);
	}
	return err;
}

static enum hd_err know_table(struct hd_config_reading *r, const struct hd_json *table, const char *in)
{
	for (size_t i = 0; i < hd_json_count(table); i++) {
		const char *name = hd_json_key(table, i);
		if (!hd_published_null(hd_json_item(table, i)) && !is_known(r->type->key, name, in) &&
			(in || !is_known(hd_published_common, name, NULL)))
			return hd_fail(r->diag, HD_E_INPUT,
				"%s: the key %s%s%s is not known of a %s, and outputs may depend on it; "
				"remove it if you know that "
				"they do not", r->name, in ? in : "", in ? "." : "", name, r->type->name);
	}
	return HD_OK;
}

static enum hd_err know_all(struct hd_config_reading *r)
{
	enum hd_err err = know_table(r, r->json, NULL);

	for (const struct hd_published_key *key = r->type->key; key->name && !err; key++) {
		const struct hd_json *table = key->take == hd_take_table ? hd_json_find(r->json, key->name) :
			NULL;
		if (!hd_published_null(table))
			err = know_table(r, table, key->name);
	}
	return err;
}

/* "a, b and c" */
static const char *known(struct hd_config_reading *r)
{
	struct hd_text text;

	hd_text_init(&text, r->arena);
	for (const struct hd_published_type *t = hd_published_types; t->name; t++)
		hd_text_addf(&text, "%s%s", t == hd_published_types ? "" : t[1].name ? ", " : " and ",
			t->name);
	return text.full ? "other types" : text.at;
}

static enum hd_err find_type(struct hd_config_reading *r, const char *asked)
{
	const char *name = NULL;
	const struct hd_json *found = hd_json_find(r->json, "model_type");
	enum hd_err err = hd_published_null(found) ? HD_OK : hd_json_as_text(found, &name, r->diag);

	if (err || (!name && !asked))
		return err;
	for (r->type = hd_published_types; r->type->name; r->type++)
		if (name ? !strcmp(r->type->name, name) : !strcmp(r->type->model, asked))
			break;
	if (name && !r->type->name)
		return hd_fail(r->diag, HD_E_INPUT,
			"%s: model_type is %s; this build imports %s. Another type computes otherwise even "
			"where its tensors have the same names; to train it as it is, export it to ONNX "
			"(docs/from-pytorch.md, model.use: onnx:FILE); to take the tensors alone, import the "
			".safetensors file from a folder without config.json", r->name, name, known(r));
	if (name && asked && strcmp(r->type->model, asked) != 0)
		return hd_fail(r->diag, HD_E_INPUT,
			"%s: model_type is %s, which is builtin:%s and not builtin:%s; leave out "
			"--model, or import the .safetensors file from a folder without config.json",
			r->name, name, r->type->model,
			asked);
	if (!r->type->name) {
		r->type = NULL;
		hd_text_addf(&r->out->notes, "%s has no model_type: it was not read\n", r->name);
	}
	return r->out->notes.full ? hd_published_nomem(r) : HD_OK;
}

enum hd_err hd_published_read(struct hd_published *published, const struct hd_json *json, const char *name,
	const char *asked,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_config_reading r = { .out = published, .json = json, .name = name, .arena = arena,
		.diag = diag };
	enum hd_err err;

	*published = (struct hd_published){ 0 };
	hd_text_init(&published->notes, arena);
	hd_text_add(&published->notes, "");
	err = hd_json_as(json, HD_JSON_OBJECT, diag);
	if (!err)
		err = find_type(&r, asked);
	if (err || !r.type)
		return err;
	published->model = r.type->model;
	err = take_keys(&r, r.type->key);
	if (!err)
		err = take_keys(&r, hd_published_common);
	return err ? err : know_all(&r);
}

void hd_published_list(const char *model, struct hd_text *out)
{
	for (const struct hd_published_type *t = hd_published_types; t->name; t++) {
		if (strcmp(t->model, model) != 0)
			continue;
		hd_text_addf(out, "%s: ", t->name);
		for (const struct hd_published_head *h = t->head; h->architecture; h++)
			hd_text_addf(out, "%s%s", h == t->head ? "" : ", ", h->architecture);
	}
}
