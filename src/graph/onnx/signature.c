/* What PyTorch's newer exporter says of a module's parameters, and what its optimizer did to them.
 *
 *	graph: pkg.torch.export.ExportedProgram.graph_signature
 *		p_fc_weight: PARAMETER target='fc.weight'
 *		b_scale: BUFFER target='scale' persistent=True
 *		c_lifted_tensor_0: CONSTANT_TENSOR target='lifted_tensor_0'
 *	node: pkg.torch.onnx.fx_node
 *		%linear : [num_users=1] = call_function[target=...](args = (%x, %p_fc_weight, %p_fc_bias),
 *		kwargs = {})
 *
 * Nodes with one text came of one call. A tensor that the text names and none of them reads is *missed*: the
 * optimizer has put an equal one in its place (then they read one that the text does not name), or computed
 * with it (then they read one that the module does not have), or left it out. Fields of newer protocols than
 * our messages know: read from the bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "graph/onnx/owners.h"
#include "graph/onnx/wire.h"

/* field numbers of onnx.proto */
enum { GRAPH_NODE = 1, GRAPH_METADATA = 16, NODE_METADATA = 9, ENTRY_KEY = 1, ENTRY_VALUE = 2 };

struct name_slice { const char *at; uint64_t len; };

struct signature_entry {                            /* of the module's signature */
	struct name_slice arg;
	const char *target;
	bool is_param;
	struct hd_onnx_val *init;         /* of that name; NULL: the file has none */
	uint32_t named, read, missed;     /* the last call that names it, reads it, misses it; 0: none */
	bool found;                       /* where it is missed, another tensor is it */
	struct hd_onnx_val *copy, *copy_of;       /* that tensor, where it was copied for this entry */
};

struct operand_place { uint32_t node, k; };

struct signature {
	struct hd_importer *im;
	struct signature_entry *entry; uint32_t nentries;
	struct name_slice *text;               /* [n_node] */
	uint32_t *next, *head;            /* nodes of one call; [n_node], and the first of each call */
	uint32_t ncalls;
	/* of one call */
	uint32_t *missed, nmissed;        /* entries, in the order of the text */
	/* reads of a tensor that the text does not name; of one that the module has not */
	struct operand_place *other, *made;
	uint32_t nother, nmade, nstatistics;      /* of `other` */
	struct hd_diag *diag;
};

/* ---- the texts */

static bool is(struct name_slice s, const char *word) { return s.len == strlen(word) &&
	!memcmp(s.at, word, s.len);
	}

static struct name_slice field_of(const uint8_t *bytes, uint64_t len, uint32_t id)
{
	struct hd_wire wire = { bytes, len, 0 };
	struct hd_wire_field field;
	struct name_slice found = { NULL, 0 };

	while (hd_wire_next(&wire, &field) > 0)
		if (field.id == id && field.type == 2)
			found = (struct name_slice){ (const char *)field.bytes, field.len };
	return found;
}

/* The value of `key` among the entries that are fields `id` of a message. */
static struct name_slice metadata(const uint8_t *bytes, uint64_t len, uint32_t id, const char *key)
{
	struct hd_wire wire = { bytes, len, 0 };
	struct hd_wire_field field;

	while (hd_wire_next(&wire, &field) > 0)
		if (field.id == id && field.type == 2 && is(field_of(field.bytes, field.len, ENTRY_KEY), key))
			return field_of(field.bytes, field.len, ENTRY_VALUE);
	return (struct name_slice){ NULL, 0 };
}

static struct name_slice line_of(struct name_slice *rest)
{
	const char *end = memchr(rest->at, '\n', rest->len);
	struct name_slice line = { rest->at, end ? (uint64_t)(end - rest->at) : rest->len };
	uint64_t used = line.len + (end != NULL);

	rest->at += used;
	rest->len -= used;
	return line;
}

/* "ARG: KIND target='NAME' ..." of the kinds that have a tensor. */
static bool take_line(struct signature *s, struct name_slice line)
{
	static const char *const kinds[] = { ": PARAMETER target='", ": BUFFER target='",
		": CONSTANT_TENSOR target='" };

	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		uint64_t n = strlen(kinds[k]);
		const char *colon = memchr(line.at, ':', line.len), *end = colon;
		uint64_t left = colon ? line.len - (uint64_t)(colon - line.at) : 0;
		if (left <= n || memcmp(colon, kinds[k], n) != 0 ||
			!(end = memchr(colon + n, '\'', left - n)))
			continue;
		char *target = hd_arena_text(&s->im->file.arena, colon + n,
			(size_t)(end - colon - (ptrdiff_t)n));
		if (!target)
			return false;
		struct hd_onnx_val *v = hd_onnx_find(s->im, target);
		s->entry[s->nentries++] = (struct signature_entry){ .arg = { line.at,
			(uint64_t)(colon - line.at) },
			.target = target, .is_param = k == 0,
			.init = v && v->kind == HD_VAL_INIT ? v : NULL };
	}
	return true;
}

static int by_slice(const struct name_slice *a, const struct name_slice *b)
{
	int order = memcmp(a->at, b->at, a->len < b->len ? a->len : b->len);

	return order ? order : a->len < b->len ? -1 : a->len > b->len;
}

static int by_arg(const void *a, const void *b) { return by_slice(&((const struct signature_entry *)a)->arg,
	&((const struct signature_entry *)b)->arg); }

static struct signature_entry *entry_of(const struct signature *s, struct name_slice arg)
{
	struct signature_entry key = { .arg = arg };

	return s->nentries ? bsearch(&key, s->entry, s->nentries, sizeof key, by_arg) : NULL;
}

/* Of an initializer; NULL: the module has none of that name. */
static struct signature_entry *entry_with(const struct signature *s, const struct hd_onnx_val *v)
{
	return v->said ? &s->entry[v->said - 1] : NULL;
}

static enum hd_err no_memory(const struct signature *s) { return hd_fail(s->diag, HD_E_NOMEM,
	"%s: no memory for its metadata", s->im->file.name); }

static enum hd_err read_signature(struct signature *s, struct name_slice text)
{
	uint64_t lines = 1;

	for (uint64_t i = 0; i < text.len; i++)
		lines += text.at[i] == '\n';
	s->entry = hd_arena_take(&s->im->file.arena, lines, sizeof *s->entry);
	if (!s->entry)
		return no_memory(s);
	while (text.len) {
		struct name_slice line = line_of(&text);
		if (is(line, "# outputs"))
			break;
		if (!take_line(s, line))
			return no_memory(s);
	}
	if (s->nentries)
		qsort(s->entry, s->nentries, sizeof *s->entry, by_arg);
	for (uint32_t e = 0; e < s->nentries; e++)
		if (s->entry[e].init) {
			s->entry[e].init->said = e + 1;
			s->entry[e].init->role = s->entry[e].is_param ? HD_ROLE_PARAM : HD_ROLE_CONST;
		}
	return HD_OK;
}

/* ---- calls: nodes of one text */

static enum hd_err read_calls(struct signature *s)
{
	struct hd_arena *arena = &s->im->file.arena;
	size_t n = s->im->file.graph->n_node, cap = 16, at = 0, nin = 0;
	struct hd_wire wire = { s->im->file.graph_bytes, s->im->file.graph_len, 0 };
	struct hd_wire_field field;

	while (cap < 2 * n)
		cap *= 2;
	for (size_t i = 0; i < n; i++)
		nin += s->im->file.graph->node[i]->n_input;
	/* call + 1, by text */
	uint32_t *place = hd_arena_take(arena, cap, sizeof *place),
		*last = hd_arena_take(arena, n + 1, sizeof *last);
	s->text = hd_arena_take(arena, n + 1, sizeof *s->text);
	s->next = hd_arena_take(arena, n + 1, sizeof *s->next);
	s->head = hd_arena_take(arena, n + 1, sizeof *s->head);
	s->missed = hd_arena_take(arena, s->nentries + 1, sizeof *s->missed);
	s->other = hd_arena_take(arena, nin + 1, sizeof *s->other);
	s->made = hd_arena_take(arena, nin + 1, sizeof *s->made);
	if (!place || !last || !s->text || !s->next || !s->head || !s->missed || !s->other || !s->made)
		return no_memory(s);
	while (at < n && hd_wire_next(&wire, &field) > 0) {
		if (field.id != GRAPH_NODE || field.type != 2)
			continue;
		s->text[at] = metadata(field.bytes, field.len, NODE_METADATA, "pkg.torch.onnx.fx_node");
		s->next[at] = HD_NONE;
		size_t p = s->text[at].len ? hd_hash64(s->text[at].at, s->text[at].len) & (cap - 1) : 0;
		while (s->text[at].len && place[p] && by_slice(&s->text[s->head[place[p] - 1]],
			&s->text[at]) != 0)
			p = (p + 1) & (cap - 1);
		if (s->text[at].len && !place[p]) {
			s->head[s->ncalls++] = (uint32_t)at;
			place[p] = s->ncalls;
			last[s->ncalls - 1] = (uint32_t)at;
		} else if (s->text[at].len) {
			s->next[last[place[p] - 1]] = (uint32_t)at;
			last[place[p] - 1] = (uint32_t)at;
		}
		at++;
	}
	return HD_OK;
}

static bool in_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	(c >= '0' && c <= '9') || c == '_'; }

/* Entries that the text names: %p_fc_weight. */
static void name_entries(struct signature *s, struct name_slice text, uint32_t call, bool missed)
{
	for (uint64_t i = 0; i < text.len; i++) {
		uint64_t n = 0;
		while (text.at[i] == '%' && i + 1 + n < text.len && in_word(text.at[i + 1 + n]))
			n++;
		struct signature_entry *e = n ? entry_of(s, (struct name_slice){ text.at + i + 1, n }) : NULL;
		if (e && missed && e->read != call && e->missed != call) {
			e->missed = call;
			s->missed[s->nmissed++] = (uint32_t)(e - s->entry);
		}
		if (e)
			e->named = call;
	}
}

/* Of these an op has constants of its own making beside the tensors of the call: zeros to start from,
 * gains of 1. */
static bool is_ops_own(const Onnx__NodeProto *node, uint32_t k)
{
	static const struct { const char *op; uint32_t from; } rows[] = { { "LSTM", 4 }, { "GRU", 4 },
		{ "RNN", 4 }, { "InstanceNormalization", 1 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].op, node->op_type) && k >= rows[i].from)
			return true;
	return false;
}

static bool is_statistic(const Onnx__NodeProto *node, uint32_t k) { return k >= 3 &&
	!strcmp(node->op_type, "BatchNormalization"); }

static void read_entries(struct signature *s, uint32_t call)
{
	for (uint32_t at = s->head[call - 1]; at != HD_NONE; at = s->next[at]) {
		const Onnx__NodeProto *node = s->im->file.graph->node[at];
		for (uint32_t k = 0; k < node->n_input; k++) {
			struct hd_onnx_val *v = *node->input[k] ? hd_onnx_find(s->im, node->input[k]) : NULL;
			struct signature_entry *e = v && v->kind == HD_VAL_INIT ? entry_with(s, v) : NULL;
			if (e)
				e->read = call;
			if (e && (e->named != call || (e->is_param && is_statistic(node, k))) &&
				hd_onnx_is_float_init(v)) {
				s->nstatistics += is_statistic(node, k);
				s->other[s->nother++] = (struct operand_place){ at, k };
			}
			if (!e && hd_onnx_is_float_init(v) && !is_ops_own(node, k) && !is_statistic(node, k))
				s->made[s->nmade++] = (struct operand_place){ at, k };
		}
	}
}

/* ---- what became of what a call misses */

static struct hd_onnx_val *value_at(const struct signature *s, struct operand_place p)
{
	return hd_onnx_find(s->im, s->im->file.graph->node[p.node]->input[p.k]);
}

/* The tensor at `p` is entry e of the module (another may be read in the same place elsewhere), in every
 * call that misses e. */
static enum hd_err own(struct signature *s, struct operand_place p, uint32_t e, bool keeps, bool is_param)
{
	struct hd_onnx_val *v = value_at(s, p);
	struct signature_entry *entry = e == HD_NONE ? NULL : &s->entry[e];
	bool mine = entry && entry->copy_of == v;
	enum hd_err err = HD_OK;

	if (mine) {
		s->im->file.graph->node[p.node]->input[p.k] = (char *)(uintptr_t)entry->copy->name;
		entry->copy->nuses++;
		v->nuses--;
	} else if (!keeps && v->nuses > 1) {
		err = hd_onnx_own(s->im, p.node, p.k, entry && v->said ? entry->target : v->name, s->diag);
	}
	if (err)
		return err;
	struct hd_onnx_val *now = value_at(s, p);
	now->role = is_param ? HD_ROLE_PARAM : HD_ROLE_CONST;
	if (entry && now != v) {
		entry->copy = now;
		entry->copy_of = v;
	}
	return HD_OK;
}

/* A tensor that was computed: of the first parameter that is missed where it is read. */
static enum hd_err take_made(struct signature *s, struct operand_place p)
{
	struct hd_onnx_val *v = value_at(s, p);
	uint32_t e = 0;

	while (!s->entry[s->missed[e]].is_param)
		e++;
	if (v->first == HD_NONE)
		v->first = s->missed[e];
	return own(s, p, s->missed[e], v->first == s->missed[e], true);
}

/* Equal tensors in the place of what the call misses, in the order of its text: statistics for buffers,
 * others for parameters. */
static enum hd_err take_others(struct signature *s, uint32_t nparams)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0, next[2] = { 0, 0 }; i < s->nother && !err && s->nmissed; i++) {
		bool is_param = nparams && !is_statistic(s->im->file.graph->node[s->other[i].node],
			s->other[i].k);
		uint32_t *m = &next[is_param];
		while (*m < s->nmissed && s->entry[s->missed[*m]].is_param != is_param)
			++*m;
		err = own(s, s->other[i], *m < s->nmissed ? s->missed[*m] : HD_NONE, false, is_param);
		++*m;
	}
	return err;
}

/* The biases of a recurrent layer are one tensor. */
static bool is_recurrent(const struct signature *s, uint32_t call)
{
	for (uint32_t at = s->head[call - 1]; at != HD_NONE; at = s->next[at])
		if (!strcmp(s->im->file.graph->node[at]->op_type, "LSTM") ||
			!strcmp(s->im->file.graph->node[at]->op_type, "GRU"))
			return true;
	return false;
}

static enum hd_err take_call(struct signature *s, uint32_t call)
{
	const Onnx__NodeProto *first = s->im->file.graph->node[s->head[call - 1]];
	const struct signature_entry *lost = NULL;
	uint32_t nparams = 0, turned = HD_NONE;
	enum hd_err err = HD_OK;

	s->nmissed = s->nother = s->nmade = s->nstatistics = 0;
	name_entries(s, s->text[s->head[call - 1]], call, false);
	read_entries(s, call);
	name_entries(s, s->text[s->head[call - 1]], call, true);
	for (uint32_t i = 0; i < s->nmissed; i++) {
		const struct signature_entry *e = &s->entry[s->missed[i]];
		nparams += e->is_param;
		lost = e->is_param ? e : lost;
		turned = e->is_param && e->init ? s->missed[i] : turned;
	}
	if (lost && s->nmissed - nparams > s->nstatistics)
		return hd_fail(s->diag, HD_E_INPUT,
			"%s: the module's parameter '%s' is not in the file: the exporter computed a norm "
			"into the node '%s' before it, which would be trained without one; export "
			"with optimize=False", s->im->file.name, lost->target, first->name);
	err = take_others(s, nparams);
	bool all = s->nother - s->nstatistics >= nparams;
	if (!all && s->nmade && turned != HD_NONE)
		return hd_fail(s->diag, HD_E_INPUT,
			"%s: node '%s' reads a copy of '%s' that the exporter computed, so the two would "
			"not be trained as one: "
			"export with optimize=False", s->im->file.name, first->name, s->entry[turned].target);
	for (uint32_t i = 0; i < s->nmade && !err && !all; i++)
		err = take_made(s, s->made[i]);
	all = all || s->nother - s->nstatistics + s->nmade >= nparams || (s->nmade && is_recurrent(s, call));
	for (uint32_t i = 0; i < s->nmissed; i++)
		s->entry[s->missed[i]].found |= all;
	return err;
}

/* Parameters that no call misses and no call reads were computed with, or the module does not use them:
 * without a computed tensor it is the second. */
static enum hd_err find_lost(const struct signature *s)
{
	const char *made = NULL;

	for (uint32_t at = 0; at < s->im->val_cap; at++)
		if (s->im->val[at].name && hd_onnx_is_float_init(&s->im->val[at]) &&
			s->im->val[at].role == HD_ROLE_CONST && !s->im->val[at].said)
			made = s->im->val[at].name;
	for (uint32_t i = 0; i < s->nentries; i++) {
		const struct signature_entry *e = &s->entry[i];
		if (e->is_param && !e->init && !e->found && (e->missed || made))
			return hd_fail(s->diag, HD_E_INPUT,
				"%s: the module's parameter '%s' is not in the file: the exporter "
				"left it out%s%s%s; export with optimize=False", s->im->file.name, e->target,
				e->missed ? " as it does not count now" : " or computed '",
				e->missed ? "" : made, e->missed ? "" : "' from it");
	}
	return HD_OK;
}

enum hd_err hd_onnx_signature(struct hd_importer *im, bool *known, struct hd_diag *diag)
{
	struct signature s = { .im = im, .diag = diag };
	struct name_slice text = metadata(im->file.graph_bytes, im->file.graph_len, GRAPH_METADATA,
		"pkg.torch.export.ExportedProgram.graph_signature");

	*known = text.len > 0;
	if (*known && im->nbranches)            /* what follows reads nodes in the order of the bytes */
		return hd_fail(diag, HD_E_INPUT,
			"%s: '%s' chooses between branches; export without control flow",
			im->file.name, im->branch[0].node->output[0]);
	enum hd_err err = *known ? read_signature(&s, text) : HD_OK;
	if (!err && *known)
		err = read_calls(&s);
	for (uint32_t at = 0; at < im->val_cap && !err && *known; at++)
		if (im->val[at].name && hd_onnx_is_float_init(&im->val[at]) && !im->val[at].said)
			im->val[at].role = HD_ROLE_CONST;
	for (uint32_t call = 1; call <= s.ncalls && !err; call++)
		err = take_call(&s, call);
	return err || !*known ? err : find_lost(&s);
}
