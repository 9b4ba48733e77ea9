#include "plan/collective_cost.h"

#include <stddef.h>
#include <string.h>

#include "base/num.h"
#include "plan/scan.h"

static const char *const links[HD_COLLECTIVE_LINKS] = { "local", "remote" };

/* Of a link's line, in its order. */
static const struct { const char *name; size_t at; double min, max; } fields[] = {
	{ "alpha", offsetof(struct hd_collective_costs, alpha_ns), 0, 6e10 },
	{ "beta", offsetof(struct hd_collective_costs, beta_ns), 0, 1e9 },
	{ "gamma", offsetof(struct hd_collective_costs, gamma_ns), 0, 1e9 },
	{ "overhead", offsetof(struct hd_collective_costs, overhead_ns), 0, 6e10 },
	{ "incast", offsetof(struct hd_collective_costs, incast), 1,
		HD_COLLECTIVE_INCAST },
};
enum { FIELDS = sizeof fields / sizeof *fields };

static double *field(struct hd_collective_costs *costs, uint32_t i)
{
	return (double *)((char *)costs + fields[i].at);
}

static bool is(const char *word, size_t len, const char *text)
{
	return len == strlen(text) && !memcmp(word, text, len);
}

static enum hd_err decimal(struct hd_scan *scan, const char *what, double min, double max, double *out)
{
	const char *word;
	char copy[HD_NUM_CAP + 1];
	size_t len;

	if (!hd_scan_word(scan, &word, &len))
		return hd_scan_refuse(scan, scan->line_end, "%s is missing", what);
	if (len >= sizeof copy)
		return hd_scan_refuse(scan, word, "%s is no number", what);
	memcpy(copy, word, len);
	copy[len] = 0;
	if (strlen(copy) != len || hd_num_f64(copy, min, max, out, NULL))
		return hd_scan_refuse(scan, word, "%s is a number from %g to %g", what, min, max);
	*out += 0;                        /* -0 is 0 */
	return HD_OK;
}

static enum hd_err read_link(struct hd_collective_table *table, struct hd_scan *scan, uint32_t *seen)
{
	const char *word;
	size_t len;
	uint32_t link = 0;
	enum hd_err err = HD_OK;

	if (!hd_scan_word(scan, &word, &len))
		return hd_scan_refuse(scan, scan->line_end, "local or remote is missing");
	while (link < HD_COLLECTIVE_LINKS && !is(word, len, links[link]))
		link++;
	if (link == HD_COLLECTIVE_LINKS)
		return hd_scan_refuse(scan, word, "a link is local or remote");
	if (*seen >> link & 1)
		return hd_scan_refuse(scan, word, "%s is there twice", links[link]);
	*seen |= 1u << link;
	for (uint32_t i = 0; i < FIELDS && !err; i++)
		err = decimal(scan, fields[i].name, fields[i].min, fields[i].max, field(&table->link[link],
			i));
	return err;
}

static enum hd_err read_kind(struct hd_scan *scan, enum hd_collective *kind)
{
	const char *word;
	size_t len;

	if (!hd_scan_word(scan, &word, &len))
		return hd_scan_refuse(scan, scan->line_end, "the primitive is missing");
	for (uint32_t k = 0; k < HD_COLLECTIVE_COUNT; k++)
		if (is(word, len, hd_collective_word((enum hd_collective)k))) {
			*kind = (enum hd_collective)k;
			return HD_OK;
		}
	return hd_scan_refuse(scan, word, "no primitive; `heddle bench comm --help` names them");
}

static enum hd_err read_ratio(struct hd_collective_table *table, struct hd_scan *scan)
{
	enum hd_collective kind = HD_COLLECTIVE_DIRECT;
	const char *word;
	size_t len;
	uint64_t class;
	double ratio;

	enum hd_err err = read_kind(scan, &kind);
	if (err)
		return err;
	if (!hd_scan_word(scan, &word, &len))
		return hd_scan_refuse(scan, scan->line_end, "the size class is missing");
	err = hd_scan_number(scan, word, len, HD_COLLECTIVE_CLASSES - 1, &class);
	if (!err)
		err = decimal(scan, "ratio", -1, 8, &ratio);
	if (err)
		return err;
	if (ratio != -1 && ratio < 0.125)
		return hd_scan_refuse(scan, scan->line, "a ratio is from 0.125 to 8, or -1: unusable");
	if (ratio < 0 && kind == HD_COLLECTIVE_DIRECT)
		return hd_scan_refuse(scan, scan->line,
			"direct cannot be unusable: every sum can be made by it");
	table->ratio[kind][class] = ratio;
	return HD_OK;
}

static enum hd_err read_line(struct hd_collective_table *table, struct hd_scan *scan, uint32_t *seen)
{
	const char *word;
	size_t len;
	enum hd_err err;

	if (!hd_scan_word(scan, &word, &len))
		return HD_OK;
	if (is(word, len, "link"))
		err = read_link(table, scan, seen);
	else if (is(word, len, "ratio"))
		err = read_ratio(table, scan);
	else
		return hd_scan_refuse(scan, word, "a line begins with link or ratio");
	if (!err && hd_scan_word(scan, &word, &len) && *word != '#')
		err = hd_scan_refuse(scan, word, "more than the line has room for");
	return err;
}

enum hd_err hd_collective_table_parse(struct hd_collective_table *table, const char *text, size_t len,
	const char *file, struct hd_diag *diag)
{
	struct hd_scan scan = hd_scan_of(text, len, file, diag);
	struct hd_collective_table read;
	const char *word, *version;
	size_t nword, nversion;
	uint32_t seen = 0;
	enum hd_err err = HD_OK;

	hd_collective_table_init(&read);
	if (!hd_scan_line(&scan, false) || !hd_scan_word(&scan, &word, &nword) ||
		!is(word, nword, "heddle-collectives") || !hd_scan_word(&scan, &version, &nversion) ||
		!is(version, nversion, "1") || hd_scan_word(&scan, &word, &nword)) {
		scan.line = scan.line ? scan.line : text;
		return hd_scan_refuse(&scan, scan.line, "the first line is: heddle-collectives 1");
	}
	while (!err && hd_scan_line(&scan, false))
		err = read_line(&read, &scan, &seen);
	if (!err)
		*table = read;
	return err;
}

void hd_collective_table_print(const struct hd_collective_table *table, struct hd_text *text)
{
	struct hd_collective_table copy = *table;
	char number[HD_NUM_CAP];

	hd_text_add(text, "heddle-collectives 1\n");
	for (uint32_t l = 0; l < HD_COLLECTIVE_LINKS; l++) {
		hd_text_addf(text, "link %s", links[l]);
		for (uint32_t i = 0; i < FIELDS; i++)
			hd_text_addf(text, " %s", hd_num_print_f64(number, *field(&copy.link[l], i)));
		hd_text_add(text, "\n");
	}
	for (uint32_t k = 0; k < HD_COLLECTIVE_COUNT; k++)
		for (uint32_t c = 0; c < HD_COLLECTIVE_CLASSES; c++)
			if (table->ratio[k][c] != 1)
				hd_text_addf(text, "ratio %s %u %s\n",
					hd_collective_word((enum hd_collective)k), c,
					hd_num_print_f64(number, table->ratio[k][c]));
}
