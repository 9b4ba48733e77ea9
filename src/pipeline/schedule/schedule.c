#include "pipeline/schedule.h"

#include <string.h>

#include "plan/scan.h"

const char *const hd_update_names[HD_NUPDATES] = {
#define X(id, name) [HD_UPDATE_##id] = (name),
	HD_UPDATES(X)
#undef X
};

static const char *const section_names[] = { "prologue", "period", "epilogue" };
enum { NSECTIONS = sizeof section_names / sizeof section_names[0] };

struct schedule_reader {
	struct hd_scan scan;
	struct hd_arena *arena;
	struct hd_schedule now;
	/* cap: lists of `now`; said: by directive, 0 unsaid */
	uint32_t cap, ins_left, said_m, said_stages;
	uint32_t *said_place, nplace;
	bool any_place;                           /* mod, v: it goes on for stages without end */
	/* of `now`; [0] is the only one until a second is begun */
	struct hd_ilist *section[NSECTIONS];
	uint32_t nsections, nread;                        /* named; lists read of the last one */
};

static enum hd_err no_memory(const struct schedule_reader *r)
{
	return hd_fail(r->scan.diag, HD_E_NOMEM, "%s:%u: no memory for schedules", r->scan.file,
		r->scan.nline);
}

static bool at_section(const struct hd_scan *scan)
{
	return scan->line_end - scan->at > 7 && !memcmp(scan->at, "section", 7);
}

/* Lists of one schedule: the lines before the next heading or section. */
static uint32_t count_lists(struct hd_scan scan)
{
	uint32_t n = 0;

	while (hd_scan_line(&scan, true) && *scan.at != '#' && !(n && at_section(&scan)))
		n += hd_scan_is_list(&scan);
	return n;
}

static enum hd_err begin(struct schedule_reader *r, const char *heading, size_t len)
{
	while (len && heading[len - 1] == ' ')
		len--;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)heading[i] < 0x20 && heading[i] != '\t')
			return hd_scan_refuse(&r->scan, heading + i, "a control character in a heading");
	r->now = (struct hd_schedule){ .heading = hd_arena_text(r->arena, heading, len) };
	r->cap = count_lists(r->scan);
	r->cap = r->cap < HD_MAX_RANKS ? r->cap : HD_MAX_RANKS;
	for (int i = 0; i < NSECTIONS; i++)
		r->section[i] = NULL;
	r->section[0] = hd_arena_take(r->arena, (size_t)r->cap + 1, sizeof *r->section[0]);
	r->said_m = r->said_stages = r->nplace = r->nsections = r->nread = 0;
	return r->now.heading && r->section[0] ? HD_OK : no_memory(r);
}

static enum hd_err read_list(struct schedule_reader *r)
{
	const char *at = r->scan.at;
	uint32_t rank = 0;
	enum hd_err err = hd_scan_rank(&r->scan, HD_MAX_RANKS, &rank);

	if (err)
		return err;
	if (rank != r->nread || rank >= r->cap)
		return hd_scan_refuse(&r->scan, at, r->nread < r->cap ? "the list of rank %u comes next" :
			"there are lists of %u ranks", r->nread);
	uint32_t s = r->nsections ? r->nsections - 1 : 0;
	r->now.nranks = r->cap;
	return hd_scan_list(&r->scan, &r->section[s][r->nread++], &r->ins_left, r->arena);
}

static enum hd_err read_number(struct schedule_reader *r, uint32_t max, uint32_t *out)
{
	const char *word;
	size_t len;
	uint64_t v = 0;

	hd_scan_word(&r->scan, &word, &len);
	enum hd_err err = hd_scan_number(&r->scan, word, len, max, &v);
	if (!err && (v == 0 || hd_scan_word(&r->scan, &word, &len)))
		err = hd_scan_refuse(&r->scan, word, "one number above 0 belongs here");
	*out = err ? *out : (uint32_t)v;
	return err;
}

static enum hd_err read_p(struct schedule_reader *r)
{
	const char *at = r->scan.at;
	uint32_t p = 0;
	enum hd_err err = read_number(r, HD_MAX_RANKS, &p);

	return !err && p != r->cap ? hd_scan_refuse(&r->scan, at, "p is %u, there are lists of %u ranks", p,
		r->cap) : err;
}

static enum hd_err read_m(struct schedule_reader *r) { return read_number(r, INT32_MAX, &r->said_m); }

static enum hd_err read_stages(struct schedule_reader *r) { return read_number(r, HD_SCHEDULE_STAGES,
	&r->said_stages); }

/* Compared with the lists when these are known; "mod" and "v" are spelled out then. */
static enum hd_err read_place(struct schedule_reader *r)
{
	const char *word;
	size_t len;
	uint64_t rank = 0;

	if (!hd_scan_word(&r->scan, &word, &len))
		return hd_scan_refuse(&r->scan, word, "mod, v or the rank of each stage belongs here");
	bool mod = len == 3 && !memcmp(word, "mod", 3), v = len == 1 && *word == 'v';
	r->any_place = mod || v;
	r->said_place = hd_arena_take(r->arena, HD_SCHEDULE_STAGES, sizeof *r->said_place);
	if (!r->said_place)
		return no_memory(r);
	if (mod || v) {
		for (uint32_t s = 0; s < HD_SCHEDULE_STAGES && r->cap; s++)
			r->said_place[s] = mod ? s % r->cap : s < r->cap ? s : s < 2 * r->cap ?
				2 * r->cap - 1 - s : HD_NO_RANK;
		r->nplace = HD_SCHEDULE_STAGES;
		return hd_scan_word(&r->scan, &word, &len) ? hd_scan_refuse(&r->scan, word,
			"the line ends here") : HD_OK;
	}
	enum hd_err err;
	do {
		if (r->nplace == HD_SCHEDULE_STAGES)
			return hd_scan_refuse(&r->scan, word, "more than %d stages", HD_SCHEDULE_STAGES);
		err = hd_scan_number(&r->scan, word, len, HD_MAX_RANKS - 1, &rank);
		r->said_place[r->nplace++] = (uint32_t)rank;
	} while (!err && hd_scan_word(&r->scan, &word, &len));
	return err;
}

static bool is_word(const char *word, size_t len, const char *name) { return strlen(name) == len &&
	!memcmp(word, name, len); }

/* They come in order, each with the lists of all ranks. */
static enum hd_err read_section(struct schedule_reader *r)
{
	const char *word;
	size_t len;

	if (!hd_scan_word(&r->scan, &word, &len) || r->nsections == NSECTIONS ||
		!is_word(word, len, section_names[r->nsections]))
		return hd_scan_refuse(&r->scan, word, r->nsections < NSECTIONS ? "section %s comes here" :
			"%s was the last section",
			section_names[r->nsections < NSECTIONS ? r->nsections : NSECTIONS - 1]);
	if (r->nread != (r->nsections ? r->cap : 0))
		return hd_scan_refuse(&r->scan, r->scan.line,
			r->nsections ? "a section has a list of each of %u ranks" :
			"the first section stands before all lists", r->cap);
	if (hd_scan_word(&r->scan, &word, &len))
		return hd_scan_refuse(&r->scan, word, "the line ends here");
	if (!r->section[r->nsections] && !(r->section[r->nsections] = hd_arena_take(r->arena,
		(size_t)r->cap + 1, sizeof *r->section[0])))
		return no_memory(r);
	r->nsections++;
	r->nread = 0;
	return HD_OK;
}

static enum hd_err read_update(struct schedule_reader *r)
{
	const char *word;
	size_t len;
	int u = 0;

	if (hd_scan_word(&r->scan, &word, &len))
		while (u < HD_NUPDATES && !is_word(word, len, hd_update_names[u]))
			u++;
	else
		u = HD_NUPDATES;
	if (u == HD_NUPDATES)
		return hd_scan_refuse(&r->scan, word, "flush, stash, vsync or 2bw belongs here");
	r->now.update = (enum hd_update_mode)u;
	return hd_scan_word(&r->scan, &word, &len) ? hd_scan_refuse(&r->scan, word, "the line ends here") :
		HD_OK;
}

static const struct { const char *word; bool anywhere; enum hd_err (*read)(struct schedule_reader *r);
	} directives[] = {
	{ "p", false, read_p }, { "m", false, read_m }, { "stages", false, read_stages }, { "place", false,
		read_place },
	{ "update", false, read_update }, { "section", true, read_section },
};
enum { NDIRECTIVES = sizeof directives / sizeof directives[0] };

static enum hd_err read_directive(struct schedule_reader *r)
{
	const char *word;
	size_t len, d = 0;

	hd_scan_word(&r->scan, &word, &len);
	while (d < NDIRECTIVES && (strlen(directives[d].word) != len ||
		memcmp(directives[d].word, word, len) != 0))
		d++;
	if (d == NDIRECTIVES)
		return hd_scan_refuse(&r->scan, word, "\"%.*s\" is neither a rank nor a directive",
			(int)(len < 20 ? len : 20), word);
	if (r->now.nranks && !directives[d].anywhere)
		return hd_scan_refuse(&r->scan, word, "directives stand before the lists");
	return directives[d].read(r);
}

static void infer_size(struct hd_schedule *s)
{
	s->nstages = s->nvns = 0;
	for (uint32_t rank = 0; rank < s->nranks; rank++)
		for (uint32_t i = 0; i < s->list[rank].len; i++) {
			const struct hd_ins *ins = &s->list[rank].at[i];
			/* the field is a label, or a group */
			if (ins->op == HD_INS_BAR || ins->op == HD_INS_TIE)
				continue;
			if (hd_ins_uses(ins->op, 's') && ins->stage >= s->nstages)
				s->nstages = ins->stage + 1u;
			if (hd_ins_uses(ins->op, 'v') && ins->vn <= INT32_MAX && ins->vn >= s->nvns)
				s->nvns = ins->vn + 1;
		}
}

enum hd_err hd_schedule_infer(struct hd_schedule *s, struct hd_arena *arena, struct hd_diag *diag)
{
	infer_size(s);
	s->place = hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *s->place);
	if (!s->place)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the places of %u stages", s->nstages);
	for (uint32_t stage = 0; stage < s->nstages; stage++)
		s->place[stage] = HD_NO_RANK;
	for (uint32_t rank = s->nranks; rank-- > 0;)
		for (uint32_t i = 0; i < s->list[rank].len; i++)
			if (s->list[rank].at[i].op == HD_INS_F &&
				!(s->list[rank].at[i].flags & HD_INS_SHADOW))
				s->place[s->list[rank].at[i].stage] = rank;
	return HD_OK;
}

static enum hd_err compare(const struct schedule_reader *r)
{
	const struct hd_schedule *s = &r->now;

	if ((r->said_m && r->said_m != s->nvns) || (r->said_stages && r->said_stages != s->nstages))
		return hd_scan_refuse(&r->scan, r->scan.line,
			"the lists above have m = %u and %u stages, not what their directives say", s->nvns,
			s->nstages);
	if (r->nplace > s->nstages && !r->any_place)
		return hd_scan_refuse(&r->scan, r->scan.line,
			"place names the ranks of %u stages, the lists above run %u", r->nplace, s->nstages);
	for (uint32_t stage = 0; r->nplace && stage < s->nstages; stage++)
		if (s->place[stage] != HD_NO_RANK && (stage >= r->nplace ||
			r->said_place[stage] != s->place[stage]))
			return hd_scan_refuse(&r->scan, r->scan.line,
				"the lists above run stage %u on rank %u, not where their place says",
				stage, s->place[stage]);
	return HD_OK;
}

static enum hd_err close_sections(struct schedule_reader *r)
{
	struct hd_schedule *s = &r->now;

	if (!r->nsections) {
		s->list = r->section[0];
		return s->update == HD_UPDATE_FLUSH ? HD_OK :
			hd_scan_refuse(&r->scan, r->scan.line,
			"update %s needs the sections prologue, period and epilogue",
			hd_update_names[s->update]);
	}
	if (r->nsections < NSECTIONS || r->nread != r->cap)
		return hd_scan_refuse(&r->scan, r->scan.line,
			"the schedule above ends before the lists of its sections");
	s->prologue = r->section[0];
	s->list = r->section[1];
	s->epilogue = r->section[2];
	return s->update != HD_UPDATE_FLUSH ? HD_OK :
		hd_scan_refuse(&r->scan, r->scan.line,
		"sections belong to delayed updates: write update stash, vsync or 2bw");
}

static enum hd_err finish(struct schedule_reader *r, struct hd_schedules *out)
{
	if (!r->now.nranks)
		return r->nsections ? hd_scan_refuse(&r->scan, r->scan.line,
			"the schedule above ends before the lists of its sections") : HD_OK;
	enum hd_err err = close_sections(r);
	err = err ? err : hd_schedule_infer(&r->now, r->arena, r->scan.diag);
	err = err ? err : compare(r);
	if (!err)
		out->at[out->len++] = r->now;
	return err;
}

enum hd_err hd_schedules_parse(struct hd_schedules *out, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct schedule_reader r = { .scan = hd_scan_of(text, len, file, diag), .arena = arena,
		.ins_left = HD_MAX_INS };
	struct hd_scan count = r.scan;
	struct hd_schedules all = { 0 };
	uint32_t nheadings = 0;

	while (hd_scan_line(&count, true))
		nheadings += *count.at == '#';
	all.at = hd_arena_take(arena, (size_t)nheadings + 1, sizeof *all.at);
	enum hd_err err = all.at ? begin(&r, "", 0) : no_memory(&r);
	while (!err && hd_scan_line(&r.scan, true)) {
		if (*r.scan.at == '#') {
			const char *heading = r.scan.at + 2;
			heading += heading < r.scan.line_end && *heading == ' ';
			err = finish(&r, &all);
			err = err ? err : begin(&r, heading, (size_t)(r.scan.line_end - heading));
		} else {
			err = hd_scan_is_list(&r.scan) ? read_list(&r) : read_directive(&r);
		}
	}
	err = err ? err : finish(&r, &all);
	if (!err)
		*out = all;
	return err;
}

static void print_lists(const struct hd_schedule *schedule, const struct hd_ilist *list, struct hd_text *text)
{
	for (uint32_t r = 0; r < schedule->nranks; r++) {
		hd_text_addf(text, "%u:", r);
		hd_list_print(&list[r], text);
		hd_text_add(text, "\n");
	}
}

void hd_schedule_print(const struct hd_schedule *s, struct hd_text *text)
{
	const struct hd_ilist *const section[NSECTIONS] = { s->prologue, s->list, s->epilogue };

	hd_text_addf(text, "##%s%s\n", *s->heading ? " " : "", s->heading);
	if (s->update != HD_UPDATE_FLUSH)
		hd_text_addf(text, "update %s\n", hd_update_names[s->update]);
	for (int i = 0; i < NSECTIONS; i++) {
		if (s->prologue)
			hd_text_addf(text, "section %s\n", section_names[i]);
		if (section[i])
			print_lists(s, section[i], text);
	}
}
