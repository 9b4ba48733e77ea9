#include "data/parquet.h"

#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "data/parquet/thrift_int.h"

/* The footer: a schema, walked once into leaves, and the chunks of each row group. */

enum { TAIL = 8, REQUIRED = 0, OPTIONAL = 1, REPEATED = 2,
       SCHEMA_CAP = 1 << 16, PATH_CAP = 512 };

/* ConvertedType and LogicalType, as far as they decide anything. */
enum annotation { AS_NOTHING, AS_TEXT, AS_LIST, AS_MAP, AS_DECIMAL, AS_TIME, AS_UNSIGNED, AS_HALF, AS_OTHER };

struct schema_node {
	const uint8_t *name; size_t name_len;
	int64_t type, fixed_bytes, repetition, nchildren;       /* type -1: a group */
	enum annotation as;
};

/* A group that is open. */
enum group_role { FIELDS, LIST, ELEMENTS };
struct schema_group { int64_t left; uint32_t def,
	rep; size_t path_len; enum group_role role; const char *refused;
	uint32_t list_def[HD_ROW_RANK + 1]; };

static enum hd_err damaged(const struct hd_parquet *f, const char *what, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s: its footer is damaged (%s): fetch the file again", f->name,
		what);
}

static enum annotation converted(int64_t v)
{
	static const enum annotation as[] = { AS_TEXT, AS_MAP, AS_MAP, AS_LIST, AS_TEXT, AS_DECIMAL, AS_TIME,
		AS_TIME,
		AS_TIME, AS_TIME, AS_TIME, AS_UNSIGNED, AS_UNSIGNED, AS_UNSIGNED, AS_UNSIGNED, AS_NOTHING,
		AS_NOTHING,
		AS_NOTHING, AS_NOTHING, AS_TEXT, AS_OTHER, AS_TIME };

	return v >= 0 && v < (int64_t)(sizeof as / sizeof *as) ? as[v] : AS_OTHER;
}

static enum annotation integer(struct hd_thrift *t)
{
	struct hd_thrift_field f = { 0 };
	bool is_signed = true;

	while (hd_thrift_next(t, &f))
		if (f.id == 2)
			is_signed = hd_thrift_bool(t, f.type);
		else
			hd_thrift_skip(t, f.type);
	return is_signed ? AS_NOTHING : AS_UNSIGNED;
}

/* A union: one field, whose number says which. */
static enum annotation logical(struct hd_thrift *t, enum hd_thrift_type type)
{
	static const enum annotation as[] = { AS_OTHER, AS_TEXT, AS_MAP, AS_LIST, AS_TEXT, AS_DECIMAL,
		AS_TIME, AS_TIME,
		AS_TIME, AS_OTHER, AS_NOTHING, AS_NOTHING, AS_TEXT, AS_OTHER, AS_OTHER, AS_HALF };
	struct hd_thrift_field f = { 0 };
	enum annotation found = AS_OTHER;

	t->bad = t->bad || type != HD_THRIFT_STRUCT;
	while (hd_thrift_next(t, &f)) {
		found = f.id < (int32_t)(sizeof as / sizeof *as) ? as[f.id] : AS_OTHER;
		if (f.id == 10 && f.type == HD_THRIFT_STRUCT)
			found = integer(t);
		else
			hd_thrift_skip(t, f.type);
	}
	return found;
}

static void read_node(struct hd_thrift *t, struct schema_node *n)
{
	struct hd_thrift_field f = { 0 };
	bool has_logical = false;

	*n = (struct schema_node){ .type = -1, .repetition = REQUIRED, .name = t->at };
	while (hd_thrift_next(t, &f))
		switch (f.id) {
		case 1: n->type = hd_thrift_int(t, f.type); break;
		case 2: n->fixed_bytes = hd_thrift_int(t, f.type); break;
		case 3: n->repetition = hd_thrift_int(t, f.type); break;
		case 4: n->name = hd_thrift_bytes(t, f.type, &n->name_len); break;
		case 5: n->nchildren = hd_thrift_int(t, f.type); break;
		case 6: {
			const enum annotation as = converted(hd_thrift_int(t, f.type));
			n->as = has_logical ? n->as : as;
			break;
		}
		case 10:
			n->as = logical(t, f.type);
			has_logical = true;
			break;
		default: hd_thrift_skip(t, f.type);
		}
}

static const char *refusal(const struct schema_node *n, const struct schema_group *g, uint32_t rep)
{
	if (g->refused)
		return g->refused;
	if (n->type == HD_PARQUET_INT96)
		return "INT96, an old form of times";
	if (n->as == AS_DECIMAL)
		return "decimals";
	if (n->as == AS_TIME)
		return "dates or times";
	if (n->type == HD_PARQUET_FIXED && (n->as != AS_HALF || n->fixed_bytes != 2))
		return "bytes of fixed length";
	if (n->type == HD_PARQUET_BYTES && n->as != AS_TEXT && n->as != AS_NOTHING)
		return "bytes that are no text";
	if (n->type == HD_PARQUET_BYTES && rep)
		return "lists of texts";
	return rep > HD_ROW_RANK ? "more than 7 lists inside one another" : NULL;
}

/* Role of a group that opens in `g`; what lies in lists of fields is refused. */
static void open_group(struct schema_group *next, const struct schema_node *n, const struct schema_group *g)
{
	next->left = n->nchildren;
	next->role = FIELDS;
	next->refused = g->refused;
	if (n->as == AS_LIST && n->nchildren == 1 && n->repetition != REPEATED)
		next->role = LIST;
	else if (g->role == LIST && n->repetition == REPEATED && n->nchildren == 1)
		next->role = ELEMENTS;
	else if (n->as == AS_MAP)
		next->refused = "maps";
	else if (n->repetition == REPEATED || g->role != FIELDS)
		next->refused = g->refused ? g->refused : "lists of objects";
}

struct schema_walk { struct hd_parquet *file; struct hd_arena *arena; struct hd_diag *diag;
	struct schema_group open[HD_PARQUET_LEVELS]; uint32_t depth; char path[PATH_CAP]; };

static enum hd_err add_leaf(struct schema_walk *w, const struct schema_node *n, const struct schema_group *at)
{
	struct hd_parquet_leaf *leaf = &w->file->leaf[w->file->nleaves++];

	if (n->type < 0 || n->type >= HD_PARQUET_TYPES || n->fixed_bytes < 0 || n->fixed_bytes > INT32_MAX)
		return damaged(w->file, "a type", w->diag);
	*leaf = (struct hd_parquet_leaf){ .type = (enum hd_parquet_type)n->type,
		.fixed_bytes = (uint32_t)n->fixed_bytes, .is_unsigned = n->as == AS_UNSIGNED,
		.refused = refusal(n, at, at->rep), .max_def = at->def, .max_rep = at->rep };
	memcpy(leaf->list_def, at->list_def, sizeof leaf->list_def);
	leaf->path = hd_arena_text(w->arena, w->path, at->path_len);
	return leaf->path ? HD_OK : hd_fail(w->diag, HD_E_NOMEM, "%s: no memory for its columns",
		w->file->name);
}

/* The name of a field goes to the path, but for what a list adds. */
static void add_name(struct schema_walk *w, const struct schema_node *n, const struct schema_group *g,
	struct schema_group *at)
{
	const size_t dot = w->depth > 1, room = PATH_CAP - 1;

	at->path_len = g->path_len;
	if (g->role != FIELDS || g->path_len + dot + n->name_len > room)
		return;
	if (dot)
		w->path[at->path_len++] = '.';
	for (size_t i = 0; i < n->name_len; i++)
		w->path[at->path_len++] = n->name[i] ? (char)n->name[i] : '?';
}

static enum hd_err add_node(struct schema_walk *w, const struct schema_node *n)
{
	struct schema_group *g = &w->open[w->depth - 1], at = *g;

	g->left--;
	add_name(w, n, g, &at);
	at.def += n->repetition != REQUIRED;
	at.rep += n->repetition == REPEATED;
	if (n->repetition == REPEATED && at.rep <= HD_ROW_RANK)
		at.list_def[at.rep] = at.def;
	if (n->repetition < REQUIRED || n->repetition > REPEATED || n->nchildren < 0)
		return damaged(w->file, "a repetition", w->diag);
	if (!n->nchildren)
		return add_leaf(w, n, &at);
	if (w->depth == HD_PARQUET_LEVELS)
		return hd_fail(w->diag, HD_E_INPUT, "%s: its columns lie more than %d groups deep",
			w->file->name,
			HD_PARQUET_LEVELS);
	open_group(&at, n, g);
	w->open[w->depth++] = at;
	return HD_OK;
}

static enum hd_err read_schema(struct schema_walk *w, struct hd_thrift *t, enum hd_thrift_type type)
{
	const size_t n = hd_thrift_list(t, type, HD_THRIFT_STRUCT);
	struct schema_node node;
	enum hd_err err = HD_OK;

	if (!n || n > SCHEMA_CAP || w->file->leaf)
		return damaged(w->file, "the schema", w->diag);
	w->file->leaf = hd_arena_take(w->arena, n, sizeof *w->file->leaf);
	if (!w->file->leaf)
		return hd_fail(w->diag, HD_E_NOMEM, "%s: no memory for its %zu columns", w->file->name, n);
	read_node(t, &node);                                 /* the root has no name that counts */
	w->open[w->depth++] = (struct schema_group){ .left = node.nchildren };
	for (size_t i = 1; i < n && !err && !t->bad; i++) {
		while (w->depth && !w->open[w->depth - 1].left)
			w->depth--;
		read_node(t, &node);
		err = w->depth ? add_node(w, &node) : damaged(w->file, "the schema", w->diag);
	}
	while (w->depth && !w->open[w->depth - 1].left)
		w->depth--;
	return err ? err : t->bad || w->depth ? damaged(w->file, "the schema", w->diag) : HD_OK;
}

/* ---- row groups ---- */

static void read_chunk_meta(struct hd_thrift *t, struct hd_parquet_chunk *c)
{
	struct hd_thrift_field f = { 0 };
	uint64_t data = 0, dictionary = 0;

	while (hd_thrift_next(t, &f))
		switch (f.id) {
		case 4: c->codec = (uint32_t)hd_thrift_int(t, f.type); break;
		case 5: c->nvalues = (uint64_t)hd_thrift_int(t, f.type); break;
		case 7: c->len = (uint64_t)hd_thrift_int(t, f.type); break;
		case 9: data = (uint64_t)hd_thrift_int(t, f.type); break;
		case 11: dictionary = (uint64_t)hd_thrift_int(t, f.type); break;
		default: hd_thrift_skip(t, f.type);
		}
	c->at = dictionary && dictionary < data ? dictionary : data;
}

static void read_chunk(struct hd_thrift *t, struct hd_parquet_chunk *c)
{
	struct hd_thrift_field f = { 0 };
	bool here = false, other_file = false;

	while (hd_thrift_next(t, &f))
		if (f.id == 3 && f.type == HD_THRIFT_STRUCT) {
			read_chunk_meta(t, c);
			here = true;
		} else {
			other_file = other_file || f.id == 1;
			hd_thrift_skip(t, f.type);
		}
	c->elsewhere = !here || other_file;
}

static enum hd_err read_group(struct hd_parquet *f, struct hd_thrift *t, uint32_t group, struct hd_diag *diag)
{
	struct hd_parquet_chunk *chunk = f->chunk + (size_t)group * f->nleaves;
	struct hd_thrift_field field = { 0 };
	size_t n = 0;

	while (hd_thrift_next(t, &field))
		switch (field.id) {
		case 1:
			n = hd_thrift_list(t, field.type, HD_THRIFT_STRUCT);
			if (n != f->nleaves)
				return damaged(f, "a row group has other columns than the schema", diag);
			for (size_t i = 0; i < n; i++)
				read_chunk(t, &chunk[i]);
			break;
		case 3: f->group_rows[group] = (uint64_t)hd_thrift_int(t, field.type); break;
		default: hd_thrift_skip(t, field.type);
		}
	return t->bad || n != f->nleaves ? damaged(f, "a row group", diag) : HD_OK;
}

static enum hd_err read_groups(struct hd_parquet *f, struct hd_arena *arena, struct hd_thrift *t,
	enum hd_thrift_type type, struct hd_diag *diag)
{
	const size_t n = hd_thrift_list(t, type, HD_THRIFT_STRUCT);
	enum hd_err err = HD_OK;

	if (!f->nleaves || f->chunk || n > UINT32_MAX || n > (size_t)(t->end - t->at) / f->nleaves)
		return n ? damaged(f, "the list of row groups", diag) : HD_OK;
	f->chunk = hd_arena_take(arena, n ? n * f->nleaves : 1, sizeof *f->chunk);
	f->group_rows = hd_arena_take(arena, n ? n : 1, sizeof *f->group_rows);
	if (!f->chunk || !f->group_rows)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %zu row groups", f->name, n);
	f->ngroups = (uint32_t)n;
	for (uint32_t g = 0; g < f->ngroups && !err; g++)
		err = read_group(f, t, g, diag);
	return err;
}

static enum hd_err read_footer(struct hd_parquet *f, struct hd_arena *arena, struct hd_thrift *t,
	struct hd_diag *diag)
{
	struct schema_walk walk = { .file = f, .arena = arena, .diag = diag };
	struct hd_thrift_field field = { 0 };
	uint64_t total = 0;
	enum hd_err err = HD_OK;

	while (!err && hd_thrift_next(t, &field))
		switch (field.id) {
		case 2: err = read_schema(&walk, t, field.type); break;
		case 3: f->nrows = (uint64_t)hd_thrift_int(t, field.type); break;
		case 4: err = read_groups(f, arena, t, field.type, diag); break;
		case 8: return hd_fail(diag, HD_E_INPUT, "%s is encrypted, which is not read", f->name);
		default: hd_thrift_skip(t, field.type);
		}
	if (err || t->bad || !f->nleaves)
		return err ? err : damaged(f, "its fields", diag);
	if (f->nrows > INT64_MAX)
		return damaged(f, "its count of rows", diag);
	for (uint32_t g = 0; g < f->ngroups; g++) {
		if (f->group_rows[g] > f->nrows - total)
			return damaged(f, "its count of rows", diag);
		total += f->group_rows[g];
	}
	return total == f->nrows ? HD_OK : damaged(f, "its count of rows", diag);
}

enum hd_err hd_parquet_open(struct hd_parquet *file, struct hd_arena *arena, const uint8_t *bytes, size_t len,
	const char *name, struct hd_diag *diag)
{
	*file = (struct hd_parquet){ .bytes = bytes, .len = len, .name = name };
	if (len >= 4 + TAIL && !memcmp(bytes + len - 4, "PARE", 4))
		return hd_fail(diag, HD_E_INPUT, "%s is encrypted, which is not read", name);
	if (len < 4 + TAIL || memcmp(bytes, "PAR1", 4) != 0 || memcmp(bytes + len - 4, "PAR1", 4) != 0)
		return hd_fail(diag, HD_E_INPUT, "%s is no Parquet file, or is cut off: it does not begin "
			"and end with "
			"PAR1", name);
	const uint64_t footer = hd_get32(bytes + len - TAIL);
	if (footer > len - 4 - TAIL)
		return damaged(file, "longer than the file", diag);
	struct hd_thrift t = { bytes + len - TAIL - footer, bytes + len - TAIL, false };
	return read_footer(file, arena, &t, diag);
}
