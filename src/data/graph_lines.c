#include "data/graph_lines.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/num.h"

bool hd_lines_next(struct hd_graph_lines *l, uint8_t skip)
{
	while (l->next < l->end) {
		const uint8_t *lf = memchr(l->next, '\n', (size_t)(l->end - l->next));
		l->at = l->next;
		l->stop = lf ? lf : l->end;
		l->next = lf ? lf + 1 : l->end;
		l->line++;
		if (l->stop > l->at && l->stop[-1] == '\r')
			l->stop--;
		if (!skip || (l->at < l->stop && *l->at != skip))
			return true;
	}
	return false;
}

static void skip_blanks(struct hd_graph_lines *l)
{
	while (l->at < l->stop && (*l->at == ' ' || *l->at == '\t' || *l->at == ','))
		l->at++;
}

bool hd_lines_at_end(struct hd_graph_lines *l)
{
	skip_blanks(l);
	return l->at == l->stop;
}

enum hd_err hd_lines_bad(const struct hd_graph_lines *l, const char *want)
{
	return hd_fail(l->diag, HD_E_INPUT, "%s:%llu: wanted %s", l->name, (unsigned long long)l->line, want);
}

bool hd_lines_word_ends(const struct hd_graph_lines *l, uint8_t also)
{
	return l->at == l->stop || *l->at == ' ' || *l->at == '\t' || *l->at == ',' ||
		(also && *l->at == also);
}

bool hd_lines_number(struct hd_graph_lines *l, uint8_t also, uint32_t *number)
{
	uint64_t v = 0;

	skip_blanks(l);
	if (l->at == l->stop || *l->at < '0' || *l->at > '9')
		return false;
	for (; l->at < l->stop && *l->at >= '0' && *l->at <= '9'; l->at++)
		if ((v = v * 10 + (uint64_t)(*l->at - '0')) > UINT32_MAX)
			return false;
	*number = (uint32_t)v;
	return hd_lines_word_ends(l, also);
}

enum hd_err hd_lines_id(struct hd_graph_lines *l, uint64_t nvertices, const char *want, uint32_t *id)
{
	if (!hd_lines_number(l, 0, id))
		return hd_lines_bad(l, want);
	if (*id >= nvertices)
		return hd_fail(l->diag, HD_E_INPUT, "%s:%llu: vertex %u, but the features are of %llu "
			"vertices: ids "
			"count from 0", l->name, (unsigned long long)l->line, *id,
			(unsigned long long)nvertices);
	return HD_OK;
}

struct hd_graph_lines hd_lines_begin(const uint8_t *bytes, size_t len, const char *name, struct hd_diag *diag)
{
	return (struct hd_graph_lines){ .name = name, .next = bytes, .end = bytes + len, .diag = diag };
}

enum { VALUE_CAP = 64 };

bool hd_lines_f64(struct hd_graph_lines *l, double most, double *value)
{
	char text[VALUE_CAP];
	size_t n = 0;

	while (!hd_lines_word_ends(l, 0)) {
		if (n + 1 == sizeof text)
			return false;
		text[n++] = (char)*l->at++;
	}
	text[n] = 0;
	if (n == 1 && text[0] == '1') {
		*value = 1;
		return true;
	}
	return !hd_num_f64(text, -most, most, value, NULL);
}

bool hd_lines_value(struct hd_graph_lines *l, float *value)
{
	double v;

	if (!hd_lines_f64(l, FLT_MAX, &v))
		return false;
	*value = (float)v;
	return isfinite(*value);
}
