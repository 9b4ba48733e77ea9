#include "plan/ins.h"

#include <stddef.h>
#include <string.h>

static const struct hd_ins_row rows[HD_INS_END] = {
#define X(id, number, text, fields, about) [number] = { text, fields, about },
	HD_INS(X)
#undef X
};

/* No op has more than four. */
#define AT(fields, i) HD_INS_FIELD((fields)[(i) < sizeof (fields) ? (i) : sizeof (fields) - 1])
const uint8_t hd_ins_fields[HD_INS_END] = {
#define X(id, number, text, fields, about) [number] = AT(fields, 0) | AT(fields, 1) | \
	AT(fields, 2) | AT(fields, 3),
	HD_INS(X)
#undef X
};

static const struct { uint8_t bit; char letter; const char *on; } flags[] = {
#define X(id, bit, letter, on, about) { bit, letter, on },
	HD_INS_FLAGS(X)
#undef X
};
enum { NFLAGS = sizeof flags / sizeof flags[0] };

const struct hd_ins_row *hd_ins_row(uint8_t op) { return op < HD_INS_END && rows[op].text ? &rows[op] : NULL;
	}

bool hd_ins_versioned(const struct hd_ins *ins)
{
	return ins->flags & HD_INS_VERSIONED || (hd_ins_uses(ins->op, '@') && ins->ver != HD_VER_RULE);
}

/* `on` lists op names between blanks. */
static bool listed(const char *on, const char *text)
{
	size_t len = strlen(text);

	for (const char *at = on; (at = strstr(at, text)); at += len)
		if ((at == on || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

uint8_t hd_ins_flags_of(uint8_t op)
{
	uint8_t bits = 0;

	for (size_t i = 0; i < NFLAGS; i++)
		bits |= listed(flags[i].on, rows[op].text) ? flags[i].bit : 0;
	return bits;
}

uint8_t hd_ins_flag_bit(char letter)
{
	for (size_t i = 0; i < NFLAGS; i++)
		if (flags[i].letter == letter && flags[i].bit & HD_INS_LETTERS)
			return flags[i].bit;
	return 0;
}

char hd_ins_flag_letter(uint8_t bit)
{
	for (size_t i = 0; i < NFLAGS; i++)
		if (flags[i].bit == bit)
			return flags[i].letter;
	return '\0';
}

static void put16(uint8_t *at, uint16_t v)
{
	at[0] = (uint8_t)v;
	at[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *at, uint32_t v)
{
	put16(at, (uint16_t)v);
	put16(at + 2, (uint16_t)(v >> 16));
}

static uint16_t get16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

static uint32_t get32(const uint8_t *at) { return get16(at) | (uint32_t)get16(at + 2) << 16; }

void hd_ins_put(const struct hd_ins *ins, uint8_t bytes[HD_INS_BYTES])
{
	bytes[0] = ins->op;
	bytes[1] = ins->flags;
	put16(bytes + 2, ins->stage);
	put32(bytes + 4, ins->vn);
	put32(bytes + 8, ins->ver);
	put16(bytes + 12, ins->peer);
	put16(bytes + 14, ins->slot);
}

enum hd_err hd_ins_verify(const struct hd_ins *ins, struct hd_diag *diag)
{
	const struct hd_ins_row *row = hd_ins_row(ins->op);

	if (!row)
		return hd_fail(diag, HD_E_INPUT, "instruction: there is no op number %u", ins->op);
	if (ins->flags && ins->flags & ~hd_ins_flags_of(ins->op))
		return hd_fail(diag, HD_E_INPUT, "instruction %s: flags %u do not belong to it", row->text,
			ins->flags);
	const struct { char field; uint32_t value; const char *name; } unused[] = {
		{ 's', ins->stage, "stage" }, { 'v', ins->vn, "vn" }, { '@', ins->ver, "version" }, { '#', ins->slot, "slot" },
	};
	for (size_t i = 0; i < sizeof unused / sizeof unused[0]; i++)
		if (unused[i].value && !hd_ins_uses(ins->op, unused[i].field) &&
			!(unused[i].field == '@' && ins->flags & HD_INS_VERSIONED))
			return hd_fail(diag, HD_E_INPUT, "instruction %s: it has no %s, yet there stands %u",
				row->text, unused[i].name, unused[i].value);
	if (ins->flags & HD_INS_VERSIONED && ins->ver == HD_VER_RULE)
		return hd_fail(diag, HD_E_INPUT, "instruction %s: it names no version, yet its flag says so",
			row->text);
	if (ins->peer && !hd_ins_uses(ins->op, '>') && !hd_ins_uses(ins->op, '<'))
		return hd_fail(diag, HD_E_INPUT, "instruction %s: it has no peer, yet there stands %u",
			row->text, ins->peer);
	return HD_OK;
}

enum hd_err hd_ins_get(struct hd_ins *ins, const uint8_t bytes[HD_INS_BYTES], struct hd_diag *diag)
{
	struct hd_ins got = {
		.op = bytes[0], .flags = bytes[1], .stage = get16(bytes + 2), .vn = get32(bytes + 4),
		.ver = get32(bytes + 8), .peer = get16(bytes + 12), .slot = get16(bytes + 14),
	};
	enum hd_err err = hd_ins_verify(&got, diag);

	if (!err)
		*ins = got;
	return err;
}
