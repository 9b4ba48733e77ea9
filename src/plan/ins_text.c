#include <string.h>

#include "plan/ins.h"

void hd_ins_print(const struct hd_ins *ins, struct hd_text *text)
{
	const struct hd_ins_row *row = hd_ins_row(ins->op);

	if (!row) {
		hd_text_addf(text, "op%u", ins->op);
		return;
	}
	hd_text_add(text, row->text);
	for (uint8_t bit = 1; bit; bit = (uint8_t)(bit << 1))
		if (ins->flags & bit & HD_INS_LETTERS) {
			const char letter = hd_ins_flag_letter(bit);
			hd_text_put(text, &letter, 1);
		}
	if (hd_ins_uses(ins->op, 's'))
		hd_text_addf(text, "%u", ins->stage);
	if (hd_ins_uses(ins->op, 'v'))
		hd_text_addf(text, ".%d", (int32_t)ins->vn);
	if (hd_ins_versioned(ins))
		hd_text_addf(text, "@%d", hd_ver_value(ins->ver));
	if (hd_ins_uses(ins->op, '>') || hd_ins_uses(ins->op, '<'))
		hd_text_addf(text, "%c%u", hd_ins_uses(ins->op, '>') ? '>' : '<', ins->peer);
	if (ins->slot)
		hd_text_addf(text, "#%u", ins->slot);
}

struct ins_word { const char *start, *at, *end; struct hd_diag *diag; };

static bool take(struct ins_word *w, char c)
{
	bool here = w->at < w->end && *w->at == c;

	w->at += here;
	return here;
}

/* Digits without a superfluous zero in front. */
static enum hd_err number(struct ins_word *w, const char *what, uint32_t max, uint32_t *out)
{
	const char *from = w->at;
	uint64_t v = 0;

	while (w->at < w->end && *w->at >= '0' && *w->at <= '9' && v <= max)
		v = v * 10 + (uint64_t)(*w->at++ - '0');
	if (w->at == from)
		return hd_fail(w->diag, HD_E_INPUT, "a number is missing: the %s", what);
	if (v > max || (*from == '0' && w->at > from + 1)) {
		w->at = from;
		return hd_fail(w->diag, HD_E_INPUT, "the %s is not a plain number up to %u", what, max);
	}
	*out = (uint32_t)v;
	return HD_OK;
}

static enum hd_err signed_number(struct ins_word *w, const char *what, int32_t *out)
{
	uint32_t v = 0;
	bool minus = take(w, '-');
	enum hd_err err = number(w, what, INT32_MAX, &v);

	if (!err && minus && v == 0)
		return hd_fail(w->diag, HD_E_INPUT, "write 0 without a sign");
	*out = minus ? -(int32_t)v : (int32_t)v;
	return err;
}

static enum hd_err take_op(struct ins_word *w, struct hd_ins *ins)
{
	size_t best = 0, left = (size_t)(w->end - w->at);

	for (uint8_t op = 0; op < HD_INS_END; op++) {
		const struct hd_ins_row *row = hd_ins_row(op);
		size_t len = row ? strlen(row->text) : 0;
		if (len > best && len <= left && memcmp(row->text, w->at, len) == 0) {
			best = len;
			ins->op = op;
		}
	}
	if (!best)
		return hd_fail(w->diag, HD_E_INPUT, "no instruction begins like \"%.*s\"",
			(int)(left < 20 ? left : 20), w->at);
	w->at += best;
	return HD_OK;
}

static enum hd_err take_flags(struct ins_word *w, struct hd_ins *ins)
{
	for (uint8_t bit; w->at < w->end && (bit = hd_ins_flag_bit(*w->at)); w->at++) {
		if (!(bit & hd_ins_flags_of(ins->op)) || (ins->flags & bit))
			return hd_fail(w->diag, HD_E_INPUT, "%s takes no flag %c here",
				hd_ins_row(ins->op)->text, *w->at);
		ins->flags |= bit;
	}
	return HD_OK;
}

static enum hd_err take_fields(struct ins_word *w, struct hd_ins *ins)
{
	uint32_t v = 0;
	int32_t signed_v = 0;
	enum hd_err err = HD_OK;

	if (hd_ins_uses(ins->op, 's')) {
		err = number(w, "stage", UINT16_MAX, &v);
		ins->stage = (uint16_t)v;
	}
	if (!err && hd_ins_uses(ins->op, 'v')) {
		if (!take(w, '.'))
			return hd_fail(w->diag, HD_E_INPUT, "a point and a virtual node are missing");
		err = signed_number(w, "virtual node", &signed_v);
		ins->vn = (uint32_t)signed_v;
	}
	if (!err && hd_ins_uses(ins->op, '@'))
		ins->ver = HD_VER_RULE;
	if (!err && (hd_ins_uses(ins->op, '@') || hd_ins_flags_of(ins->op) & HD_INS_VERSIONED) &&
		take(w, '@')) {
		err = signed_number(w, "version", &signed_v);
		ins->ver = hd_ver_of(signed_v);
		ins->flags |= hd_ins_flags_of(ins->op) & HD_INS_VERSIONED;
	}
	if (!err && (hd_ins_uses(ins->op, '>') || hd_ins_uses(ins->op, '<'))) {
		char sign = hd_ins_uses(ins->op, '>') ? '>' : '<';
		if (!take(w, sign))
			return hd_fail(w->diag, HD_E_INPUT, "a %c and the other rank are missing", sign);
		err = number(w, "other rank", UINT16_MAX, &v);
		ins->peer = (uint16_t)v;
	}
	if (!err && hd_ins_uses(ins->op, '#') && take(w, '#')) {
		err = number(w, "slot", UINT16_MAX, &v);
		ins->slot = (uint16_t)v;
	}
	return err;
}

enum hd_err hd_ins_parse(struct hd_ins *out, const char *word, size_t len, size_t *bad, struct hd_diag *diag)
{
	struct ins_word w = { word, word, word + len, diag };
	struct hd_ins ins = { 0 };
	enum hd_err err = take_op(&w, &ins);

	err = err ? err : take_flags(&w, &ins);
	err = err ? err : take_fields(&w, &ins);
	if (!err && w.at < w.end)
		err = hd_fail(diag, HD_E_INPUT, "\"%.*s\" does not belong to %s",
			(int)(w.end - w.at < 20 ? w.end - w.at : 20), w.at, hd_ins_row(ins.op)->text);
	if (err && bad)
		*bad = (size_t)(w.at - w.start);
	if (!err)
		*out = ins;
	return err;
}
