/* Of each answer of METIS: in place of the library's function one that answers as the test says. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/signal.h"
#include "gnn/split.h"
#include "tests/check.h"

/* As the library declares it; a build without METIS has no header to include. */
int METIS_PartGraphKway(int32_t *nvertices, int32_t *ncon, int32_t *offset, int32_t *at, int32_t *weight,
	int32_t *size, int32_t *edge_weight, int32_t *nparts, float *share, float *tolerance,
	int32_t *options, int32_t *objective, int32_t *part);

enum { N = 64, OK = 1, BAD_INPUT = -2, NO_MEMORY = -3, FAILED = -4 };

static int answer, asked;

int METIS_PartGraphKway(int32_t *nvertices, int32_t *ncon, int32_t *offset, int32_t *at, int32_t *weight,
	int32_t *size, int32_t *edge_weight, int32_t *nparts, float *share, float *tolerance,
	int32_t *options, int32_t *objective, int32_t *part)
{
	(void)ncon, (void)offset, (void)at, (void)weight, (void)size, (void)edge_weight, (void)nparts;
	(void)share, (void)tolerance, (void)options, (void)objective;
	asked++;
	for (int32_t v = 0; v < *nvertices; v++)
		part[v] = 0;                       /* all on one side: no cut that keeps the rules */
	return answer;
}

static enum hd_err split_a_path(enum hd_split_with with, enum hd_graph_splitter *used, struct hd_diag *diag)
{
	struct hd_split_how how = { .with = with, .nintervals = 2 };
	uint64_t offset[N + 1] = { 0 };
	uint32_t at[2 * N], weight[N], interval[N];

	for (uint32_t v = 0; v < N; v++) {
		uint64_t n = offset[v];
		if (v > 0)
			at[n++] = v - 1;
		if (v + 1 < N)
			at[n++] = v + 1;
		offset[v + 1] = n;
		weight[v] = (uint32_t)(n - offset[v]);
	}
	struct hd_split_graph graph = { N, { offset, at }, weight };
	return hd_split(&graph, &how, interval, used, diag);
}

static void a_failure_of_metis_is_no_cut_of_another_splitter(void **state)
{
	static const enum hd_split_with with[] = { HD_SPLIT_AUTO, HD_SPLIT_METIS };
	static const struct { int answer; enum hd_err err; const char *says; } cases[] = {
		{ OK, HD_OK, "" }, { BAD_INPUT, HD_E_IO, "METIS failed" },
		{ NO_MEMORY, HD_E_NOMEM, "METIS has no memory" },
	};

	(void)state;
	if (!hd_split_metis_built())
		SKIP("no METIS in this build");
	for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
		enum hd_graph_splitter used = HD_SPLITTER_METIS;
		struct hd_diag diag = { "" };
		asked = 0;
		answer = cases[i / 2].answer;
		enum hd_err err = split_a_path(with[i % 2], &used, &diag);
		CHECK(err == cases[i / 2].err && strstr(diag.text, cases[i / 2].says), "case %zu: %d, '%s'",
			i, (int)err, diag.text);
		CHECK(asked == 1, "case %zu: METIS was asked %d times", i, asked);
		CHECK(err || used == HD_SPLITTER_OWN, "case %zu: METIS made no cut", i);
	}
}

/* It has caught the signal, and the process ends by it as it does at any other time. */
static void sigterm_while_it_cuts_ends_the_process(void **state)
{
	struct hd_diag diag = { "" };
	enum hd_graph_splitter used;
	int status = 0;

	(void)state;
	if (!hd_split_metis_built())
		SKIP("no METIS in this build");
	answer = FAILED;
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(split_a_path(HD_SPLIT_METIS, &used, &diag) ? 1 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "status %x", status);
}

/* METIS catches it, too, where it is ignored: that is said. */
static void sigterm_that_is_ignored_is_said(void **state)
{
	struct hd_diag diag = { "" };
	enum hd_graph_splitter used;

	(void)state;
	if (!hd_split_metis_built())
		SKIP("no METIS in this build");
	answer = FAILED;
	void (*before)(int) = signal(SIGTERM, SIG_IGN);
	const enum hd_err err = split_a_path(HD_SPLIT_METIS, &used, &diag);
	(void)signal(SIGTERM, before);
	assert_int_equal(err, HD_E_IO);
	CHECK(strstr(diag.text, "stopped by a SIGTERM that this process ignores"), "'%s'", diag.text);
}

/* Where the program takes it as a request to stop, the cut ends as stopped. */
static void sigterm_while_it_cuts_is_a_request_to_stop(void **state)
{
	static const enum hd_split_with with[] = { HD_SPLIT_AUTO, HD_SPLIT_METIS };

	(void)state;
	if (!hd_split_metis_built())
		SKIP("no METIS in this build");
	for (size_t i = 0; i < 2; i++) {
		enum hd_graph_splitter used;
		struct hd_diag diag = { "" };
		assert_int_equal(hd_signal_install(&diag), HD_OK);
		answer = FAILED;
		assert_int_equal(split_a_path(with[i], &used, &diag), HD_E_PREEMPTED);
		CHECK(strstr(diag.text, "stopped by SIGTERM"), "'%s'", diag.text);
		hd_signal_stop_set(HD_STOP_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_of_metis_is_no_cut_of_another_splitter),
		cmocka_unit_test(sigterm_while_it_cuts_ends_the_process),
		cmocka_unit_test(sigterm_that_is_ignored_is_said),
		cmocka_unit_test(sigterm_while_it_cuts_is_a_request_to_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
