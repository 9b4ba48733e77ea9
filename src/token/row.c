#include <assert.h>
#include <string.h>

#include "token/read.h"
#include "token/row_int.h"

/* Member `key` of a part that may be missing: which of `words` it is; *at stays without it. */
static enum hd_err read_word(const struct hd_json *json, const char *key, const char *const *words,
	uint32_t n,
	uint32_t *at, struct hd_diag *diag)
{
	const struct hd_json *member = hd_json_find(json, key);
	const char *text;
	char path[160];

	if (hd_token_is_null(member))
		return HD_OK;
	enum hd_err err = hd_json_as_text(member, &text, diag);
	for (uint32_t i = 0; i < n && !err; i++)
		if (!strcmp(words[i], text)) {
			*at = i;
			return HD_OK;
		}
	return err ? err : hd_fail(diag, HD_E_INPUT, "%s is \"%.40s\": not supported", hd_json_path(member,
		path,
		sizeof path), text);
}

enum hd_err hd_token_fill_read(struct hd_token_fill *fill, const struct hd_json *json, struct hd_diag *diag)
{
	static const char *const sides[] = { "Right", "Left" };
	static const char *const cuts[] = { "LongestFirst", "OnlyFirst", "OnlySecond" };
	const struct hd_json *cut = hd_json_find(json, "truncation"), *pad = hd_json_find(json, "padding");
	uint32_t side = 0, way = 0;
	int64_t id = HD_TOKEN_NONE, kind = 0;
	enum hd_err err = HD_OK;

	if (!hd_token_is_null(cut) && ((err = read_word(cut, "direction", sides, 2, &side, diag)) ||
		(err = read_word(cut, "strategy", cuts, 3, &way, diag))))
		return err;
	*fill = (struct hd_token_fill){ .cut = (enum hd_token_cut)way, .cut_left = side,
		.pad = HD_TOKEN_NONE };
	if (hd_token_is_null(pad))
		return HD_OK;
	side = 0;
	if ((err = read_word(pad, "direction", sides, 2, &side, diag)) ||
		(hd_json_find(pad, "pad_id") && (err = hd_json_get_i64(pad, "pad_id", 0, HD_TOKEN_VOCAB - 1,
			&id,
		diag))) || (hd_json_find(pad, "pad_type_id") && (err = hd_json_get_i64(pad, "pad_type_id", 0,
			255,
		&kind, diag))))
		return err;
	fill->pad_left = side;
	fill->pad = (uint32_t)id;
	fill->pad_kind = (uint8_t)kind;
	return HD_OK;
}

/* How many tokens of two texts of n[0] and n[1] stay. */
static void share(uint32_t room, uint32_t n[2])
{
	const uint32_t small = n[0] <= n[1] ? 0 : 1, large = 1 - small;
	uint32_t few = n[small], many = few > room ? few : room - few > few ? room - few : few;

	if (few + many > room) {
		few = room / 2;
		many = few + room % 2;
	}
	n[small] = few;
	n[large] = many;
}

static enum hd_err lengths(const struct hd_token_fill *fill, const struct hd_token_ids own[2], bool pair,
	const char *name, uint32_t room, uint32_t n[2], struct hd_diag *diag)
{
	const uint32_t which = fill->cut == HD_TOKEN_CUT_SECOND, other = 1 - which;

	n[0] = own[0].n;
	n[1] = pair ? own[1].n : 0;
	if ((uint64_t)n[0] + n[1] <= room)
		return HD_OK;
	if (pair && fill->cut == HD_TOKEN_CUT_LONGEST)
		share(room, n);
	else if (!pair && which == 0)
		n[0] = room;
	else if (n[other] < room)
		n[which] = room - n[other];
	else
		return hd_fail(diag, HD_E_INPUT,
			"%s: the tokenizer cuts the %s text alone, and the other leaves no "
			"room for it: %u tokens of %u", name, which ? "second" : "first", n[other], room);
	return HD_OK;
}

static void put(struct hd_token_row *row, uint32_t *at, uint32_t id, uint8_t kind)
{
	row->id[*at] = id;
	row->kind[(*at)++] = kind;
}

enum hd_err hd_token_fill_row(const struct hd_token_fill *fill, const struct hd_token_slots *slots,
	const struct hd_token_ids own[2], const char *name, uint32_t most, uint32_t pad,
	struct hd_token_row *row, struct hd_diag *diag)
{
	uint32_t added = 0, n[2], at = 0;
	bool pair = false;

	for (uint32_t i = 0; i < slots->n; i++) {
		added += slots->at[i].id != HD_TOKEN_NONE;
		pair |= slots->at[i].id == HD_TOKEN_NONE && slots->at[i].text == 1;
	}
	if (!slots->n)
		return hd_fail(diag, HD_E_INPUT, "%s: the tokenizer has no form for two texts", name);
	if (added >= most)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the tokenizer adds %u tokens, the model reads %u: no text fits",
			name, added, most);
	enum hd_err err = lengths(fill, own, pair, name, most - added, n, diag);
	if (err)
		return err;
	row->cut = n[0] < own[0].n || (pair && n[1] < own[1].n);
	row->n = added + n[0] + n[1];
	row->first = fill->pad_left ? most - row->n : 0;
	while (at < row->first)
		put(row, &at, pad, fill->pad_kind);
	for (uint32_t i = 0; i < slots->n; i++) {
		const struct hd_token_slot *s = &slots->at[i];
		const struct hd_token_ids *of = &own[s->text];
		if (s->id != HD_TOKEN_NONE)
			put(row, &at, s->id, s->kind);
		for (uint32_t k = 0; s->id == HD_TOKEN_NONE && k < n[s->text]; k++)
			put(row, &at, of->at[fill->cut_left ? of->n - n[s->text] + k : k], s->kind);
	}
	assert(at == row->first + row->n);
	while (at < most)
		put(row, &at, pad, fill->pad_kind);
	return HD_OK;
}
