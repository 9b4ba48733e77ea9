/* Einsum of ONNX: any number of operands, "..." and a result that is not written. An equation becomes letters
 * alone, then sums of two operands each, from the left: what is between keeps the letters that an operand to
 * come or the result has. So a sum runs as soon as it can, and no product of all operands is ever there. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "graph/einsum.h"
#include "graph/onnx/import.h"

enum { OPERANDS = 8, LETTERS = 24 };

struct letters { char at[LETTERS + 1]; uint32_t n; bool dots; };
struct equation { struct letters in[OPERANDS], out; uint32_t n; bool has_out; };

static bool has(const struct letters *l, char letter) { return memchr(l->at, letter, l->n) != NULL; }

static bool add(struct letters *l, char letter)
{
	if (l->n == LETTERS)
		return false;
	l->at[l->n++] = letter;
	l->at[l->n] = '\0';
	return true;
}

/* Letters and dots up to a mark; dots become '.', once. */
static bool take(const char **at, const char *end, struct letters *l)
{
	for (; *at < end && **at != ',' && **at != '-'; ++*at) {
		if (**at == ' ')
			continue;
		if (**at == '.') {
			if (l->dots || end - *at < 3 || memcmp(*at, "...", 3) != 0 || !add(l, '.'))
				return false;
			l->dots = true;
			*at += 2;
		} else if (!isascii((unsigned char)**at) || !isalpha((unsigned char)**at) || !add(l, **at)) {
			return false;
		}
	}
	return true;
}

static bool parse(struct equation *e, const char *text, size_t len)
{
	const char *at = text, *end = text + len;

	for (e->n = 0; e->n < OPERANDS;) {
		if (!take(&at, end, &e->in[e->n++]))
			return false;
		if (at == end || *at != ',')
			break;
		at++;
	}
	if (at == end)
		return true;
	e->has_out = end - at >= 2 && at[0] == '-' && at[1] == '>';
	at += 2;
	return e->has_out && take(&at, end, &e->out) && at == end;
}

/* Letters in the place of dots: the last k of those that no operand has. */
static bool spell(struct letters *l, const char *spare, uint32_t nspare, uint32_t k)
{
	struct letters was = *l;

	l->n = 0;
	for (uint32_t i = 0; i < was.n; i++)
		if (was.at[i] != '.') {
			if (!add(l, was.at[i]))
				return false;
		} else {
			for (uint32_t j = nspare - k; j < nspare; j++)
				if (!add(l, spare[j]))
					return false;
		}
	return true;
}

/* How many extents the dots of an operand are; HD_MAX_DIMS + 1: the letters do not fit its rank. */
static uint32_t dots_of(const struct letters *l, uint32_t rank)
{
	const uint32_t named = l->n - l->dots;

	return l->dots ? rank < named ? HD_MAX_DIMS + 1 : rank - named : rank == named ? 0 : HD_MAX_DIMS + 1;
}

static enum hd_err without_dots(struct hd_onnx_call *call, struct equation *e)
{
	uint32_t rank[OPERANDS], most = 0, nspare = 0;
	char spare[HD_MAX_DIMS];

	for (uint32_t k = 0; k < e->n; k++) {
		rank[k] = dots_of(&e->in[k], hd_onnx_in(call, k)->rank);
		if (rank[k] > HD_MAX_DIMS)
			return hd_onnx_no(call, "operand %u has another number of extents than letters", k);
		most = rank[k] > most ? rank[k] : most;
	}
	for (char c = 'A'; c <= 'z' && nspare < most; c++) {
		bool used = !isalpha((unsigned char)c) || has(&e->out, c);
		for (uint32_t k = 0; k < e->n; k++)
			used = used || has(&e->in[k], c);
		if (!used)
			spare[nspare++] = c;
	}
	if (e->has_out && most && !e->out.dots)
		return hd_onnx_no(call, "the result leaves out what \"...\" stands for");
	bool good = nspare == most;
	for (uint32_t k = 0; k < e->n && good; k++)
		good = spell(&e->in[k], spare, nspare, rank[k]);
	if (!e->has_out)
		e->out.dots = add(&e->out, '.');
	return good && spell(&e->out, spare, nspare, nspare) ? HD_OK :
		hd_onnx_no(call, "more letters than are read");
}

/* Without "->" the result has what the dots are, then the letters that stand once, in their order. */
static bool result_of(struct equation *e)
{
	const struct letters dots = e->out;
	bool good = true;

	for (char c = 'A'; c <= 'z' && !e->has_out && good; c++) {
		uint32_t times = 0;
		for (uint32_t k = 0; k < e->n; k++)
			for (uint32_t i = 0; i < e->in[k].n; i++)
				times += e->in[k].at[i] == c;
		if (times == 1 && !has(&dots, c))
			good = add(&e->out, c);
	}
	return good;
}

static bool is_wanted(const struct equation *e, uint32_t next, char letter)
{
	bool wanted = has(&e->out, letter);

	for (uint32_t k = next; k < e->n && !wanted; k++)
		wanted = has(&e->in[k], letter);
	return wanted;
}

/* What of two operands is read later, next: the first operand to come. */
static bool between(const struct equation *e, uint32_t next, const struct letters *a, const struct letters *b,
	struct letters *mid)
{
	const struct letters *of[2] = { a, b };
	bool good = true;

	*mid = (struct letters){ .n = 0 };
	for (int o = 0; o < 2; o++)
		for (uint32_t i = 0; i < of[o]->n && good; i++)
			if (is_wanted(e, next, of[o]->at[i]) && !has(mid, of[o]->at[i]))
				good = add(mid, of[o]->at[i]);
	return good && mid->n > 0;
}

static enum hd_err sum(struct hd_onnx_call *call, const struct equation *e, const uint32_t *in, uint32_t *y)
{
	struct letters have = e->in[0], mid;
	char text[4 * (LETTERS + 3)];
	enum hd_err err = HD_OK;

	if (e->n == 1) {
		snprintf(text, sizeof text, "%s->%s", have.at, e->out.at);
		return hd_graph_einsum(call->im->graph, text, 1, in, 0, y, &call->why);
	}
	*y = in[0];
	for (uint32_t k = 1; k < e->n && !err; k++) {
		mid = e->out;
		if (k + 1 < e->n && !between(e, k + 1, &have, &e->in[k], &mid))
			return hd_onnx_no(call, "operands 0 to %u have nothing in common with the others", k);
		snprintf(text, sizeof text, "%s,%s->%s", have.at, e->in[k].at, mid.at);
		err = hd_graph_einsum(call->im->graph, text, 2, (uint32_t[]){ *y, in[k] }, 0, y, &call->why);
		have = mid;
	}
	return err;
}

enum hd_err hd_onnx_einsum(struct hd_onnx_call *call)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(call->node, "equation");
	struct equation e = { .n = 0 };
	uint32_t in[OPERANDS], y = 0;
	enum hd_err err = HD_OK;

	if (!a || !a->has_s || call->nin < 1 || call->nin > OPERANDS)
		return hd_onnx_no(call, "takes an equation and one to %d operands", OPERANDS);
	if (!parse(&e, (const char *)a->s.data, a->s.len) || e.n != call->nin)
		return hd_onnx_no(call, "\"%.*s\" is no equation of %u operands",
			(int)(a->s.len < 60 ? a->s.len : 60), (const char *)a->s.data, (unsigned)call->nin);
	for (uint32_t k = 0; k < call->nin; k++)
		if (!hd_onnx_in(call, k))
			return hd_onnx_no(call, "operand %u is missing", k);
	err = without_dots(call, &e);
	if (!err && !result_of(&e))
		err = hd_onnx_no(call, "more letters than are read");
	for (uint32_t k = 0; k < call->nin && !err; k++)
		err = hd_onnx_value(call, k, &in[k]);
	err = err ? err : sum(call, &e, in, &y);
	if (err)
		return err == HD_E_INVAL ? HD_E_INPUT : err;
	return e.out.n ? hd_onnx_put_like(call, 0, y) : hd_onnx_put(call, 0, y, 0, NULL);
}
