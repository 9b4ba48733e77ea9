#include "graph/einsum.h"

#include <ctype.h>
#include <string.h>

#include "graph/op.h"

/* The letters of one operand or of the result, one per extent. */
struct term { char at[HD_MAX_DIMS + 1]; uint8_t rank; };
struct einsum {
	struct hd_graph *graph;
	struct hd_diag *diag;
	const char *equation;
	uint16_t stage;
	uint8_t nin;
	struct term in[2], out;
	int64_t extent[128];              /* by letter; 0: not seen */
};

static bool has(const struct term *t, char letter) { return memchr(t->at, letter, t->rank) != NULL; }

static enum hd_err wrong(const struct einsum *e, const char *what)
{
	return hd_fail(e->diag, HD_E_INVAL, "einsum \"%.60s\": %s", e->equation, what);
}

/* Reads letters up to a mark; *at is left on it. */
static enum hd_err take_term(const struct einsum *e, const char **at, struct term *t)
{
	for (; **at && **at != ',' && **at != '-'; ++*at) {
		if (**at == ' ')
			continue;
		if (!isalpha((unsigned char)**at) || (unsigned char)**at > 127)
			return wrong(e,
				"an extent is a letter, operands are parted by ',' and the result follows "
				"'->'");
		if (has(t, **at))
			return wrong(e, "a letter stands twice in one operand: take the diagonal before");
		if (t->rank == HD_MAX_DIMS)
			return wrong(e, "more than 6 letters in an operand");
		t->at[t->rank++] = **at;
	}
	return HD_OK;
}

static enum hd_err parse(struct einsum *e)
{
	const char *at = e->equation;
	enum hd_err err = HD_OK;

	for (uint8_t i = 0; i < e->nin && err == HD_OK; i++) {
		err = take_term(e, &at, &e->in[i]);
		if (err == HD_OK && i + 1 < e->nin && *at++ != ',')
			return wrong(e, "fewer operands than were given");
	}
	if (err != HD_OK)
		return err;
	if (at[0] != '-' || at[1] != '>')
		return wrong(e, "'->' and the letters of the result follow the operands");
	at += 2;
	err = take_term(e, &at, &e->out);
	return err == HD_OK && *at ? wrong(e, "something follows the result") : err;
}

static enum hd_err bind(struct einsum *e, const uint32_t *in)
{
	for (uint8_t i = 0; i < e->nin; i++) {
		const struct hd_value *v = &e->graph->value[in[i]];
		if (v->rank != e->in[i].rank)
			return wrong(e, "an operand has another number of extents than letters");
		for (int d = 0; d < v->rank; d++) {
			int64_t *extent = &e->extent[(unsigned char)e->in[i].at[d]];
			if (*extent != 0 && *extent != v->dim[d])
				return wrong(e, "a letter stands for two different extents");
			*extent = v->dim[d];
		}
	}
	for (int d = 0; d < e->out.rank; d++)
		if (e->extent[(unsigned char)e->out.at[d]] == 0)
			return wrong(e, "the result has a letter that no operand has");
	return HD_OK;
}

static enum hd_err add(struct einsum *e, uint16_t op, uint8_t nin, const uint32_t *in,
	const struct hd_attr *attr, uint32_t *out)
{
	return hd_graph_node(e->graph, op, nin, in, attr, e->stage, out, e->diag);
}

/* Sums over the letters of `t` that neither the result nor the other operand has. */
static enum hd_err drop_lone(struct einsum *e, struct term *t, const struct term *other, uint32_t *value)
{
	struct term kept = { .rank = 0 };
	int32_t axes = 0;

	for (int d = 0; d < t->rank; d++)
		if (has(&e->out, t->at[d]) || has(other, t->at[d]))
			kept.at[kept.rank++] = t->at[d];
		else
			axes |= 1 << d;
	if (axes == 0)
		return HD_OK;
	*t = kept;
	return add(e, HD_OP_REDUCE_SUM, 1, value, &(struct hd_attr){ .i = { axes } }, value);
}

/* Extents of `t` in the order of `wanted`, which has the same letters. */
static enum hd_err order(struct einsum *e, struct term *t, const struct term *wanted, uint32_t *value)
{
	struct hd_attr attr = { .i = { 0 } };

	if (t->rank == 0 || memcmp(t->at, wanted->at, t->rank) == 0)
		return HD_OK;
	for (int d = 0; d < t->rank; d++)
		attr.i[d] = (int32_t)((const char *)memchr(t->at, wanted->at[d], t->rank) - t->at);
	*t = *wanted;
	return add(e, HD_OP_PERMUTE, 1, value, &attr, value);
}

static enum hd_err reshape(struct einsum *e, const int64_t *dim, int rank, uint32_t *value)
{
	const struct hd_value *v = &e->graph->value[*value];
	struct hd_attr attr = { .i = { 0 } };

	if (v->rank == rank && memcmp(v->dim, dim, (size_t)rank * sizeof *dim) == 0)
		return HD_OK;
	for (int d = 0; d < rank; d++) {
		if (dim[d] == 0 || dim[d] > HD_MAX_EXTENT || dim[d] < -HD_MAX_EXTENT)
			return wrong(e, "letters of two extents of rows, or too large, would be joined");
		attr.i[d] = (int32_t)dim[d];
	}
	return add(e, HD_OP_RESHAPE, 1, value, &attr, value);
}

static void append(struct term *t, const struct term *from)
{
	memcpy(t->at + t->rank, from->at, from->rank);
	t->rank = (uint8_t)(t->rank + from->rank);
}

static int64_t joined(const struct einsum *e, const struct term *t)
{
	int64_t dim[HD_MAX_DIMS];

	for (int d = 0; d < t->rank; d++)
		dim[d] = e->extent[(unsigned char)t->at[d]];
	return t->rank ? hd_dims_product(dim, t->rank) : 1;
}

/* The operand as [batch.., rows, cols]. */
static enum hd_err as_matrix(struct einsum *e, struct term *t, const struct term *batch,
	const struct term *rows, const struct term *cols,
	uint32_t *value)
{
	struct term wanted = *batch;
	int64_t dim[HD_MAX_DIMS + 2];

	append(&wanted, rows);
	append(&wanted, cols);
	enum hd_err err = order(e, t, &wanted, value);
	for (int d = 0; d < batch->rank; d++)
		dim[d] = e->extent[(unsigned char)batch->at[d]];
	dim[batch->rank] = joined(e, rows);
	dim[batch->rank + 1] = joined(e, cols);
	return err == HD_OK ? reshape(e, dim, batch->rank + 2, value) : err;
}

static enum hd_err product(struct einsum *e, uint32_t a, uint32_t b, struct term *made, uint32_t *out)
{
	struct term batch = { .rank = 0 }, m = batch, n = batch, k = batch;
	const struct term *l = &e->in[0], *r = &e->in[1];

	for (int d = 0; d < l->rank; d++) {
		struct term *kind = !has(r, l->at[d]) ? &m : has(&e->out, l->at[d]) ? &batch : &k;
		kind->at[kind->rank++] = l->at[d];
	}
	for (int d = 0; d < r->rank; d++)
		if (!has(l, r->at[d]))
			n.at[n.rank++] = r->at[d];
	if (batch.rank + 2 > HD_MAX_DIMS || batch.rank + m.rank + n.rank > HD_MAX_DIMS)
		return wrong(e, "more than 4 letters are common to all, or more than 6 left");
	enum hd_err err = as_matrix(e, &e->in[0], &batch, &m, &k, &a);
	if (err == HD_OK)
		err = as_matrix(e, &e->in[1], &batch, &k, &n, &b);
	if (err == HD_OK)
		err = add(e, HD_OP_CONTRACT, 2, (uint32_t[]){ a, b }, NULL, out);
	*made = batch;
	append(made, &m);
	append(made, &n);
	return err;
}

enum hd_err hd_graph_einsum(struct hd_graph *graph, const char *equation, uint8_t nin, const uint32_t *in,
	uint16_t stage, uint32_t *out, struct hd_diag *diag)
{
	struct einsum e = { .graph = graph, .diag = diag, .equation = equation, .stage = stage, .nin = nin };
	struct term made;
	static const struct term none;
	uint32_t value[2] = { in[0], nin > 1 ? in[1] : in[0] };
	int64_t dim[HD_MAX_DIMS] = { 1 };
	enum hd_err err = nin == 1 || nin == 2 ? parse(&e) : wrong(&e, "one or two operands");

	if (err == HD_OK)
		err = bind(&e, in);
	for (uint8_t i = 0; i < nin && err == HD_OK; i++)
		err = drop_lone(&e, &e.in[i], nin == 2 ? &e.in[1 - i] : &none, &value[i]);
	made = e.in[0];
	if (err == HD_OK && nin == 2)
		err = product(&e, value[0], value[1], &made, &value[0]);
	for (int d = 0; d < made.rank; d++)
		dim[d] = e.extent[(unsigned char)made.at[d]];
	if (err == HD_OK)
		err = reshape(&e, dim, made.rank ? made.rank : 1, &value[0]);
	if (err == HD_OK)
		err = order(&e, &made, &e.out, &value[0]);
	if (err == HD_OK)
		*out = value[0];
	return err;
}
