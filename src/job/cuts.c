#include <string.h>

#include "job/int.h"

/* optim.cuts: "auto:3", three stages cut where their FLOPs are near equal; or the first forward node of each
 * stage, as "0,12,25". */

bool hd_job_take_number(const char **at, uint32_t *number)
{
	uint64_t n = 0;
	const char *p = *at;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		n = n < UINT32_MAX ? 10 * n + (uint64_t)(*p - '0') : n;
	if (n >= UINT32_MAX)
		return false;
	*number = (uint32_t)n;
	*at = p;
	return true;
}

/* "0,12,25": how many; 0: it is none, or there are more than `cap`. */
static uint32_t take_nodes(const char **at, uint32_t *node, uint32_t cap)
{
	const char *text = *at;
	uint32_t n = 0;

	do {
		if (n == cap || !hd_job_take_number(&text, &node[n]) ||
			(n ? node[n] <= node[n - 1] : node[n] != 0))
			return 0;
		n++;
	} while (*text++ == ',');
	*at = text - 1;
	return n > 1 ? n : 0;
}

uint32_t hd_job_cuts(const char *text, bool *balance, uint32_t node[HD_JOB_MAX_CUTS])
{
	uint32_t n = 0;

	*balance = !strncmp(text, "auto:", 5);
	if (*balance) {
		text += 5;
		return hd_job_take_number(&text, &n) && !*text && n > 1 && n <= HD_JOB_MAX_CUTS ? n : 0;
	}
	n = take_nodes(&text, node, HD_JOB_MAX_CUTS);
	return *text ? 0 : n;
}

/* Where `word` stands there it is passed by. */
static bool take_word(const char **at, const char *word)
{
	const size_t len = strlen(word);
	const bool is = !strncmp(*at, word, len);

	*at += is ? len : 0;
	return is;
}

/* Stages, or one "stage" for each device and nothing of a pipeline. */
static bool makes_sense(const struct hd_job_settled *s)
{
	if (!strcmp(s->schedule, HD_JOB_SETTLED_DATA))
		return s->stages == 1 && s->width == 1 && !s->n && !s->recompute &&
			!s->tensor;
	return s->tensor <= HD_JOB_MAX_STAGES && s->stages >= (s->tensor ? 1 : 2) &&
		s->stages <= HD_JOB_MAX_STAGES && s->width && (s->has_copies || s->stages % s->width == 0) &&
		(!s->n || s->n == s->stages);
}

bool hd_job_settled(struct hd_job_settled *settled, const char *text)
{
	struct hd_job_settled s = { .stages = 0 };
	const size_t len = strcspn(text, " ");

	if (!len || len >= sizeof s.schedule)
		return false;
	memcpy(s.schedule, text, len);
	text += len;
	if (!take_word(&text, " ") || !hd_job_take_number(&text, &s.stages) || !take_word(&text, " ") ||
		!hd_job_take_number(&text, &s.width))
		return false;
	if (!strncmp(text, " 0", 2)) {
		text++;
		s.n = take_nodes(&text, s.node, HD_JOB_MAX_STAGES);
		if (!s.n)
			return false;
	}
	s.recompute = take_word(&text, " recompute");
	if (take_word(&text, " tensor ") &&
		(!hd_job_take_number(&text, &s.tensor) || s.tensor < 2))
		return false;
	if (s.tensor && take_word(&text, " groups ") &&
		(!hd_job_take_number(&text, &s.groups) || s.groups < 2 || s.tensor % s.groups))
		return false;
	if (take_word(&text, " copies ")) {
		uint32_t ranks = 0;
		s.has_copies = hd_job_take_copies(&text, s.copies) == s.stages && s.stages > 1;
		for (uint32_t i = 0; i < s.stages && s.has_copies; i++)
			ranks += s.copies[i];
		if (ranks != s.width)
			return false;
	}
	if (take_word(&text, " of ") && (!hd_job_take_number(&text, &s.ndevices) || !s.ndevices))
		return false;
	if (*text || !makes_sense(&s))
		return false;
	*settled = s;
	return true;
}

void hd_job_settled_put(const struct hd_job_settled *s, struct hd_text *text)
{
	hd_text_addf(text, "%s %u %u", s->schedule, s->stages, s->width);
	for (uint32_t i = 0; i < s->n; i++)
		hd_text_addf(text, "%s%u", i ? "," : " ", s->node[i]);
	hd_text_add(text, s->recompute ? " recompute" : "");
	if (s->tensor)
		hd_text_addf(text, " tensor %u", s->tensor);
	if (s->groups)
		hd_text_addf(text, " groups %u", s->groups);
	for (uint32_t i = 0; i < s->stages && s->has_copies; i++)
		hd_text_addf(text, "%s%u", i ? "," : " copies ", s->copies[i]);
	if (s->ndevices)
		hd_text_addf(text, " of %u", s->ndevices);
}

enum hd_err hd_job_check_cuts(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;
	const char *update = hd_job_text(job, HD_JOB_UPDATE);
	uint32_t node[HD_JOB_MAX_CUTS];
	bool balance;

	hd_job_at(reader, HD_JOB_CUTS);
	if (!job->value[HD_JOB_CUTS].is_none && !hd_job_cuts(hd_job_text(job, HD_JOB_CUTS), &balance, node))
		return hd_job_refuse(reader,
			"optim.cuts is \"%.80s\"; write auto:N for N stages of near equal work, or the first "
			"forward node of each stage, as 0,12,25: from 0, ascending, 2 to %d of them",
			hd_job_text(job, HD_JOB_CUTS), HD_JOB_MAX_CUTS);
	hd_job_at(reader, HD_JOB_UPDATE);
	if (job->value[HD_JOB_CUTS].is_none && hd_job_has_word("stash|vsync", update))
		return hd_job_refuse(reader,
			"optim.update %s needs optim.cuts: the delay of a parameter follows from the stages "
			"that the job declares; write optim.cuts: auto:4, or optim.update: 2bw, which needs "
			"none", update);
	return HD_OK;
}
