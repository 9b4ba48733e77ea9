#include "token/post.h"

#include <string.h>

#include "base/alloc.h"
#include "token/model.h"
#include "token/read.h"

enum { PATH = 160 };

typedef enum hd_err read_fn(struct hd_token_post *post, const struct hd_json *json, struct hd_diag *diag);

/* ["[SEP]", 102] */
static enum hd_err read_pair(const struct hd_json *json, const char *key, uint32_t *id, struct hd_diag *diag)
{
	const struct hd_json *pair;
	char path[PATH];
	int64_t n;
	enum hd_err err = hd_json_get(json, key, HD_JSON_ARRAY, &pair, diag);

	if (err)
		return err;
	if (hd_json_count(pair) != 2)
		return hd_fail(diag, HD_E_INPUT, "%s is not a token and its number", hd_json_path(pair, path,
			sizeof path));
	err = hd_json_as_i64(hd_json_item(pair, 1), 0, HD_TOKEN_VOCAB - 1, &n, diag);
	if (!err)
		*id = (uint32_t)n;
	return err;
}

static enum hd_err read_bert(struct hd_token_post *post, const struct hd_json *json, struct hd_diag *diag)
{
	uint32_t cls = 0, sep = 0;
	enum hd_err err;

	if ((err = read_pair(json, "cls", &cls, diag)) || (err = read_pair(json, "sep", &sep, diag)) || (err =
		hd_token_ids_add(&post->ids, cls, diag)) || (err = hd_token_ids_add(&post->ids, HD_TOKEN_NONE,
		diag)) || (err = hd_token_ids_add(&post->ids, sep, diag)))
		return err;
	post->single = (struct hd_token_slots){ { { cls, 0, 0 }, { HD_TOKEN_NONE, 0, 0 }, { sep, 0, 0 } },
		3 };
	post->pair = (struct hd_token_slots){ { { cls, 0, 0 }, { HD_TOKEN_NONE, 0, 0 }, { sep, 0, 0 },
		{ HD_TOKEN_NONE, 1, 1 }, { sep, 0, 1 } }, 5 };
	return HD_OK;
}

/* One more end between the two, and all are of one kind. */
static enum hd_err read_roberta(struct hd_token_post *post, const struct hd_json *json, struct hd_diag *diag)
{
	enum hd_err err = read_bert(post, json, diag);

	if (err)
		return err;
	const uint32_t sep = post->single.at[2].id;
	post->pair = (struct hd_token_slots){ { post->single.at[0], { HD_TOKEN_NONE, 0, 0 }, { sep, 0, 0 },
		{ sep, 0, 0 }, { HD_TOKEN_NONE, 1, 0 }, { sep, 0, 0 } }, 6 };
	return HD_OK;
}

static enum hd_err add_slot(struct hd_token_slots *slots, struct hd_token_slot slot,
	const struct hd_json *part,
	struct hd_diag *diag)
{
	char path[PATH];

	if (slots->n == HD_TOKEN_SLOTS)
		return hd_fail(diag, HD_E_INPUT, "%s: more than %d parts", hd_json_path(part, path,
			sizeof path),
			HD_TOKEN_SLOTS);
	slots->at[slots->n++] = slot;
	return HD_OK;
}

static enum hd_err add_slots(struct hd_token_slots *slots, const struct hd_json *part,
	const struct hd_json *known, uint8_t kind, struct hd_diag *diag)
{
	const struct hd_json *token, *ids;
	const char *name;
	char path[PATH];
	int64_t id;
	enum hd_err err = hd_json_get_text(part, "id", &name, diag);

	if (err)
		return err;
	if (!(token = hd_json_find(known, name)))
		return hd_fail(diag, HD_E_INPUT, "%s: \"%.60s\" is not among special_tokens",
			hd_json_path(part, path, sizeof path), name);
	if ((err = hd_json_get(token, "ids", HD_JSON_ARRAY, &ids, diag)))
		return err;
	for (size_t i = 0; i < hd_json_count(ids) && !err; i++)
		if (!(err = hd_json_as_i64(hd_json_item(ids, i), 0, HD_TOKEN_VOCAB - 1, &id, diag)))
			err = add_slot(slots, (struct hd_token_slot){ (uint32_t)id, 0, kind }, part, diag);
	return err;
}

/* `single` or `pair`, each part with its kind of tokens. */
static enum hd_err read_slots(struct hd_token_slots *slots, const struct hd_json *list,
	const struct hd_json *known, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; list && i < hd_json_count(list) && !err; i++) {
		const struct hd_json *item = hd_json_item(list, i), *added = hd_json_find(item,
			"SpecialToken"),
			*part = added;
		const char *name;
		int64_t kind = 0;
		if (!part && (err = hd_json_get(item, "Sequence", HD_JSON_OBJECT, &part, diag)))
			return err;
		if (hd_json_find(part, "type_id") && (err = hd_json_get_i64(part, "type_id", 0, 255, &kind,
			diag)))
			return err;
		if (added) {
			err = add_slots(slots, part, known, (uint8_t)kind, diag);
			continue;
		}
		if (!(err = hd_json_get_text(part, "id", &name, diag)))
			err = add_slot(slots, (struct hd_token_slot){ HD_TOKEN_NONE, !strcmp(name, "B"),
				(uint8_t)kind }, part, diag);
	}
	return err;
}

static enum hd_err add_special(struct hd_token_post *post, const struct hd_json *part,
	const struct hd_json *known,
	struct hd_diag *diag)
{
	const struct hd_json *token, *ids;
	const char *name;
	char path[PATH];
	int64_t id;
	enum hd_err err = hd_json_get_text(part, "id", &name, diag);

	if (err)
		return err;
	if (!(token = hd_json_find(known, name)))
		return hd_fail(diag, HD_E_INPUT, "%s: \"%.60s\" is not among special_tokens",
			hd_json_path(part, path,
			sizeof path), name);
	if ((err = hd_json_get(token, "ids", HD_JSON_ARRAY, &ids, diag)))
		return err;
	for (size_t i = 0; i < hd_json_count(ids) && !err; i++)
		if (!(err = hd_json_as_i64(hd_json_item(ids, i), 0, HD_TOKEN_VOCAB - 1, &id, diag)))
			err = hd_token_ids_add(&post->ids, (uint32_t)id, diag);
	return err;
}

static enum hd_err read_template(struct hd_token_post *post, const struct hd_json *json, struct hd_diag *diag)
{
	const struct hd_json *single, *known, *part;
	const char *name;
	char path[PATH];
	enum hd_err err;

	if ((err = hd_json_get(json, "single", HD_JSON_ARRAY, &single, diag)) || (err = hd_json_get(json,
		"special_tokens", HD_JSON_OBJECT, &known, diag)))
		return err;
	for (size_t i = 0; i < hd_json_count(single) && !err; i++) {
		const struct hd_json *item = hd_json_item(single, i);
		if ((part = hd_json_find(item, "SpecialToken"))) {
			err = add_special(post, part, known, diag);
			continue;
		}
		if ((err = hd_json_get(item, "Sequence", HD_JSON_OBJECT, &part, diag)) || (err =
			hd_json_get_text(part, "id", &name, diag)))
			return err;
		if (strcmp(name, "A"))
			return hd_fail(diag, HD_E_INPUT, "%s: a single text is \"A\", not \"%.20s\"",
				hd_json_path(part, path, sizeof path), name);
		err = hd_token_ids_add(&post->ids, HD_TOKEN_NONE, diag);
	}
	if (!err)
		err = read_slots(&post->single, single, known, diag);
	return err ? err : read_slots(&post->pair, hd_json_find(json, "pair"), known, diag);
}

static const struct { struct hd_token_kind base; read_fn *read; } kinds[] = {
	{ { "ByteLevel", { "type", "add_prefix_space", "trim_offsets", "use_regex" } }, NULL },
	{ { "TemplateProcessing", { "type", "single", "pair", "special_tokens" } }, read_template },
	{ { "BertProcessing", { "type", "sep", "cls" } }, read_bert },
	{ { "RobertaProcessing", { "type", "sep", "cls", "trim_offsets", "add_prefix_space" } }, read_roberta },
};

static enum hd_err read_one(void *user, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_token_post *post = user;
	char path[PATH];
	size_t k;
	enum hd_err err = hd_token_kind(json, &kinds[0].base, sizeof kinds[0], sizeof kinds / sizeof kinds[0],
		&k, diag);

	(void)arena;
	if (err || !kinds[k].read)
		return err;
	if (post->ids.n)
		return hd_fail(diag, HD_E_INPUT, "%s: a second part that adds tokens is not supported",
			hd_json_path(json, path, sizeof path));
	return kinds[k].read(post, json, diag);
}

enum hd_err hd_token_post_read(struct hd_token_post *post, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err = hd_token_sequence(json, "processors", read_one, post, arena, diag);

	if (!err && !post->ids.n) {
		post->single = (struct hd_token_slots){ { { HD_TOKEN_NONE, 0, 0 } }, 1 };
		post->pair = (struct hd_token_slots){ { { HD_TOKEN_NONE, 0, 0 }, { HD_TOKEN_NONE, 1, 1 } },
			2 };
		err = hd_token_ids_add(&post->ids, HD_TOKEN_NONE, diag);
	}
	return err;
}

void hd_token_post_finish(struct hd_token_post *post)
{
	hd_free(post->ids.at);
	*post = (struct hd_token_post){ 0 };
}
