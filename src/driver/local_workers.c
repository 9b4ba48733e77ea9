#include "driver/local_workers.h"

#include <stdio.h>

enum { HD_CREW_FIRST_NS = 100000000, HD_CREW_UNSTARTED = -1 };
#define HD_CREW_LONGEST_NS INT64_C(5000000000)

void hd_crew_init(struct hd_crew *crew, const struct hd_crew_spec *spec) { *crew =
	(struct hd_crew){ .spec = *spec }; }

static struct hd_hand *free_place(struct hd_crew *crew)
{
	for (size_t i = 0; i < HD_CREW_HANDS; i++)
		if (!crew->hand[i].proc.host)
			return &crew->hand[i];
	return NULL;
}

/* The k-th in a row: what follows waits. */
static void bad_start(struct hd_crew *crew)
{
	int64_t wait = HD_CREW_FIRST_NS;

	crew->bad_starts++;
	for (uint32_t k = 1; k < crew->bad_starts && wait < HD_CREW_LONGEST_NS; k++)
		wait *= 2;
	crew->ready_ns = hd_clock_now_ns(crew->spec.clock) + (wait < HD_CREW_LONGEST_NS ? wait :
		HD_CREW_LONGEST_NS);
}

static bool count_alike(struct hd_crew *crew, int code)
{
	crew->nalike = code == crew->alike_code ? crew->nalike + 1 : 1;
	crew->alike_code = code;
	return crew->nalike >= HD_CREW_ALIKE;
}

/* Whoever is told to go goes without fault. */
static bool is_error(int code) { return code && code != hd_err_exit(HD_E_PREEMPTED) &&
	code != hd_err_exit(HD_E_INTERRUPT); }

/* What ran for a while and then ended is no bad start, and forgives those before. */
bool hd_crew_judge(struct hd_crew *crew, const struct hd_hand_end *end, bool did_something)
{
	bool failed = !did_something && is_error(end->code);

	if (failed || end->lived_ns < HD_CREW_SHORT_NS)
		bad_start(crew);
	else
		crew->bad_starts = 0;
	if (did_something)
		crew->nalike = 0;
	if (!failed)
		return false;
	return count_alike(crew, end->code);
}

enum hd_err hd_crew_start(struct hd_crew *crew, uint32_t *number, struct hd_diag *diag)
{
	struct hd_hand *hand = free_place(crew);
	char path[HD_PATH_CAP];
	struct hd_file log = { 0 };

	if (!hand)
		return hd_fail(diag, HD_E_REFUSED, "a run starts at most %d workers on its own machine",
			HD_CREW_HANDS);
	int64_t now = hd_clock_now_ns(crew->spec.clock);
	if (now < crew->ready_ns)
		return HD_E_AGAIN;
	*hand = (struct hd_hand){ .number = crew->next++, .began_ns = now, .mark = crew->mark };
	snprintf(path, sizeof path, "%s/log", crew->spec.dir);
	enum hd_err err = hd_fs_mkdirs(crew->spec.fs, path, diag);
	snprintf(path, sizeof path, "%s/log/hand-%u.log", crew->spec.dir, hand->number);
	if (!err)
		err = hd_file_open(crew->spec.fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND, &log,
			diag);
	struct hd_spawn how = { .argv = crew->spec.argv, .in = -1, .out = log.id, .err = log.id };
	if (!err)
		err = hd_proc_spawn(crew->spec.host, &how, &hand->proc, diag);
	if (log.fs)
		err = hd_file_close(&log, err ? NULL : diag) && !err ? HD_E_IO : err;
	if (err) {
		hand->proc = (struct hd_proc){ 0 };
		bad_start(crew);
		(void)count_alike(crew, HD_CREW_UNSTARTED);
		return err;
	}
	crew->n++;
	if (number)
		*number = hand->number;
	return HD_OK;
}

bool hd_crew_ended(struct hd_crew *crew, struct hd_hand_end *end)
{
	for (size_t i = 0; i < HD_CREW_HANDS; i++) {
		struct hd_hand *hand = &crew->hand[i];
		*end = (struct hd_hand_end){ .number = hand->number, .pid = hand->proc.pid,
			.mark = hand->mark };
		if (!hand->proc.host || hd_proc_wait(&hand->proc, 0, &end->code, NULL) != HD_OK)
			continue;
		end->lived_ns = hd_clock_now_ns(crew->spec.clock) - hand->began_ns;
		hand->proc = (struct hd_proc){ 0 };
		crew->n--;
		return true;
	}
	return false;
}

struct hd_hand *hd_crew_find(struct hd_crew *crew, int pid)
{
	for (size_t i = 0; i < HD_CREW_HANDS; i++)
		if (crew->hand[i].proc.host && crew->hand[i].proc.pid == pid)
			return &crew->hand[i];
	return NULL;
}

void hd_crew_finish(struct hd_crew *crew, int64_t grace_ns)
{
	int64_t until = crew->n ? hd_clock_now_ns(crew->spec.clock) + grace_ns : 0;
	int code;

	for (size_t i = 0; i < HD_CREW_HANDS; i++)
		if (crew->hand[i].proc.host && hd_proc_signal(&crew->hand[i].proc, HD_PROC_TERM, NULL))
			continue;         /* it has just ended */
	for (size_t i = 0; i < HD_CREW_HANDS; i++) {
		struct hd_hand *hand = &crew->hand[i];
		int64_t left = hand->proc.host ? until - hd_clock_now_ns(crew->spec.clock) : 0;
		if (hand->proc.host && hd_proc_wait(&hand->proc, left > 0 ? left : 0, &code, NULL) == HD_OK)
			hand->proc = (struct hd_proc){ 0 };
		hd_proc_finish(&hand->proc);
		*hand = (struct hd_hand){ 0 };
	}
	crew->n = 0;
}
