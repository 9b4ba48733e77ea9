#include "data/parquet/thrift_int.h"

uint64_t hd_thrift_varint(struct hd_thrift *t)
{
	uint64_t v = 0;

	for (unsigned shift = 0; t->at < t->end && shift < 64; shift += 7) {
		const uint8_t byte = *t->at++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return t->bad ? 0 : v;
	}
	t->bad = true;
	t->at = t->end;
	return 0;
}

bool hd_thrift_next(struct hd_thrift *t, struct hd_thrift_field *f)
{
	if (t->bad || t->at == t->end) {
		t->bad = true;
		return false;
	}
	const uint8_t head = *t->at++;
	f->type = (enum hd_thrift_type)(head & 15);
	if (f->type == HD_THRIFT_STOP)
		return false;
	f->id = head >> 4 ? f->id + (head >> 4) : (int32_t)hd_zigzag(hd_thrift_varint(t));
	t->bad = t->bad || f->type > HD_THRIFT_STRUCT || f->id < 0 || f->id > INT16_MAX;
	return !t->bad;
}

int64_t hd_thrift_int(struct hd_thrift *t, enum hd_thrift_type type)
{
	if (type == HD_THRIFT_I8 && t->at < t->end)
		return (int8_t)*t->at++;
	t->bad = t->bad || type < HD_THRIFT_I16 || type > HD_THRIFT_I64;
	return t->bad ? 0 : hd_zigzag(hd_thrift_varint(t));
}

bool hd_thrift_bool(struct hd_thrift *t, enum hd_thrift_type type)
{
	t->bad = t->bad || (type != HD_THRIFT_TRUE && type != HD_THRIFT_FALSE);
	return type == HD_THRIFT_TRUE;
}

static void pass(struct hd_thrift *t, uint64_t n)
{
	if (n > (uint64_t)(t->end - t->at)) {
		t->bad = true;
		n = (uint64_t)(t->end - t->at);
	}
	t->at += n;
}

const uint8_t *hd_thrift_bytes(struct hd_thrift *t, enum hd_thrift_type type, size_t *len)
{
	t->bad = t->bad || type != HD_THRIFT_BINARY;
	*len = hd_thrift_varint(t);
	const uint8_t *at = t->at;
	pass(t, *len);
	*len = (size_t)(t->at - at);
	return at;
}

/* Count and type of what a list or a set holds. */
static uint64_t list_head(struct hd_thrift *t, enum hd_thrift_type *of)
{
	const uint8_t head = t->at < t->end ? *t->at : 0;

	pass(t, 1);
	*of = (enum hd_thrift_type)(head & 15);
	const uint64_t n = head >> 4 == 15 ? hd_thrift_varint(t) : head >> 4;
	t->bad = t->bad || n > (uint64_t)(t->end - t->at) || (n && *of > HD_THRIFT_STRUCT);
	return t->bad ? 0 : n;
}

size_t hd_thrift_list(struct hd_thrift *t, enum hd_thrift_type type, enum hd_thrift_type of)
{
	enum hd_thrift_type has;
	const size_t n = list_head(t, &has);

	t->bad = t->bad || type != HD_THRIFT_LIST || (n && has != of);
	return t->bad ? 0 : n;
}

/* What is open while a value is skipped: a struct, or so many elements of a list; a map has two types. */
struct skipped { bool is_struct; uint64_t left; enum hd_thrift_type of[2]; struct hd_thrift_field field; };

/* A value without what lies in it; true: `s` is open now. */
static bool skip_head(struct hd_thrift *t, enum hd_thrift_type type, bool element, struct skipped *s)
{
	*s = (struct skipped){ .is_struct = type == HD_THRIFT_STRUCT };
	switch (type) {
	case HD_THRIFT_TRUE: case HD_THRIFT_FALSE: pass(t, element); return false;
	case HD_THRIFT_I8: pass(t, 1); return false;
	case HD_THRIFT_I16: case HD_THRIFT_I32: case HD_THRIFT_I64: (void)hd_thrift_varint(t); return false;
	case HD_THRIFT_DOUBLE: pass(t, 8); return false;
	case HD_THRIFT_BINARY: pass(t, hd_thrift_varint(t)); return false;
	case HD_THRIFT_LIST: case HD_THRIFT_SET:
		s->left = list_head(t, &s->of[0]);
		s->of[1] = s->of[0];
		return true;
	case HD_THRIFT_MAP:
		s->left = hd_thrift_varint(t);
		t->bad = t->bad || s->left > (uint64_t)(t->end - t->at);
		if (s->left && t->at < t->end) {
			s->of[0] = (enum hd_thrift_type)(*t->at >> 4);
			s->of[1] = (enum hd_thrift_type)(*t->at++ & 15);
		}
		s->left *= 2;
		return true;
	case HD_THRIFT_STRUCT: return true;
	case HD_THRIFT_STOP: break;
	}
	t->bad = true;
	return false;
}

void hd_thrift_skip(struct hd_thrift *t, enum hd_thrift_type type)
{
	struct skipped open[HD_THRIFT_DEPTH];
	uint32_t depth = skip_head(t, type, false, &open[0]);

	while (depth && !t->bad) {
		struct skipped *s = &open[depth - 1];
		if (s->is_struct ? !hd_thrift_next(t, &s->field) : !s->left) {
			depth--;
			continue;
		}
		type = s->is_struct ? s->field.type : s->of[s->left & 1];
		s->left -= !s->is_struct;
		if (depth == HD_THRIFT_DEPTH)
			t->bad = true;
		else
			depth += skip_head(t, type, !s->is_struct, &open[depth]);
	}
}
