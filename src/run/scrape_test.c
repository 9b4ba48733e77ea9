/* What Prometheus gets: read line by line as its text format says, and over a socket. */
#include "run/scrape.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/check.h"

static char room[HD_SCRAPE_TEXT];

static const char *printed(const struct hd_scrape_numbers *n)
{
	struct hd_text text;

	hd_text_fixed(&text, room, sizeof room);
	hd_scrape_print(n, &text);
	assert_false(text.full);
	return room;
}

/* The value of the sample that begins with `name`; fails where it is not there once. */
static double sample(const char *text, const char *name)
{
	char line[128];
	snprintf(line, sizeof line, "\n%s ", name);
	const char *at = strstr(text, line);

	CHECK(at, "%s is not there", name);
	CHECK(!strstr(at + 1, line), "%s is there twice", name);
	return strtod(at + strlen(line), NULL);
}

static void a_histogram_counts_each_step_once_and_upwards(void **state)
{
	static const double took[] = { 0.0005, 0.001, 0.0011, 0.5, 1000 };
	struct hd_scrape_numbers n = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof took / sizeof *took; i++)
		hd_scrape_step_took(&n, took[i]);
	const char *text = printed(&n);
	assert_int_equal(sample(text, "heddle_step_seconds_bucket{le=\"0.001\"}"), 2);
	assert_int_equal(sample(text, "heddle_step_seconds_bucket{le=\"0.002\"}"), 3);
	assert_int_equal(sample(text, "heddle_step_seconds_bucket{le=\"0.256\"}"), 3);
	assert_int_equal(sample(text, "heddle_step_seconds_bucket{le=\"0.512\"}"), 4);
	assert_int_equal(sample(text, "heddle_step_seconds_bucket{le=\"131.072\"}"), 4);
	assert_int_equal(sample(text, "heddle_step_seconds_bucket{le=\"+Inf\"}"), 5);
	assert_int_equal(sample(text, "heddle_step_seconds_count"), 5);
	CHECK(sample(text, "heddle_step_seconds_sum") > 1000.5, "the sum");
}

static void every_name_has_one_type_before_its_samples(void **state)
{
	struct hd_scrape_numbers n = { .evaluated = true, .has_accuracy = true };
	char type[64];

	(void)state;
	hd_scrape_event(&n, "plan");
	char *text = strdup(printed(&n));
	for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "# TYPE ", 7)) {
			snprintf(type, sizeof type, "%.*s", (int)strcspn(line + 7, " "), line + 7);
			continue;
		}
		if (*line == '#')
			continue;
		CHECK(!strncmp(line, type, strlen(type)), "%s stands below the type of %s", line, type);
	}
	free(text);
}

static void events_beyond_the_table_count_as_other(void **state)
{
	struct hd_scrape_numbers n = { 0 };
	char kind[16];

	(void)state;
	for (int i = 0; i < HD_SCRAPE_KINDS + 10; i++) {
		snprintf(kind, sizeof kind, "kind_%d", i);
		hd_scrape_event(&n, kind);
		hd_scrape_event(&n, "lost");
	}
	const char *text = printed(&n);
	assert_int_equal(sample(text, "heddle_events_total{kind=\"kind_0\"}"), 1);
	assert_int_equal(sample(text, "heddle_events_total{kind=\"other\"}"), 10 + 2);
	assert_int_equal(sample(text, "heddle_events_total{kind=\"lost\"}"), HD_SCRAPE_KINDS + 10);
	assert_int_equal(sample(text, "heddle_reconfigurations_total{reason=\"lost\"}"),
		HD_SCRAPE_KINDS + 10);
}

/* The words are those that coordinator and workers say (hd_co_note, hd_elastic_note). */
static void changes_of_members_are_reconfigurations(void **state)
{
	static const char *const kind[] = { "join", "lost", "leave", "redo", "plan", "scale" };
	struct hd_scrape_numbers n = { 0 };
	char name[80];

	(void)state;
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
		hd_scrape_event(&n, kind[i]);
	hd_scrape_event(&n, "eval");
	const char *text = printed(&n);
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
		snprintf(name, sizeof name, "heddle_reconfigurations_total{reason=\"%s\"}", kind[i]);
		assert_int_equal(sample(text, name), 1);
	}
	assert_null(strstr(text, "reason=\"eval\""));
}

static void not_finite_numbers_are_words_of_the_format(void **state)
{
	struct hd_scrape_numbers n = { .loss = (double)NAN, .gnorm = (double)INFINITY };

	(void)state;
	const char *text = printed(&n);
	assert_non_null(strstr(text, "\nheddle_loss NaN\n"));
	assert_non_null(strstr(text, "\nheddle_gradient_norm +Inf\n"));
}

static int call(const char *at)
{
	long port = strtol(strrchr(at, ':') + 1, NULL, 10);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof to));
	return fd;
}

static void ask(const char *at, const char *request, char *answer, size_t cap)
{
	int fd = call(at);
	size_t len = 0;

	assert_int_equal(write(fd, request, strlen(request)), strlen(request));
	for (ssize_t n; len + 1 < cap && (n = read(fd, answer + len, cap - 1 - len)) > 0;)
		len += (size_t)n;
	answer[len] = 0;
	close(fd);
}

static void a_request_is_answered_whatever_came_before(void **state)
{
	static char answer[HD_SCRAPE_TEXT + 512];
	struct hd_scrape_numbers n = { .samples = 77 };
	struct hd_scrape *scrape;
	struct hd_clock clock;
	struct hd_diag diag = { "" };
	char at[128];

	(void)state;
	hd_clock_real(&clock);
	CHECK(!hd_scrape_open(&scrape, &clock, "127.0.0.1:0", at, sizeof at, &diag), "%s", diag.text);
	hd_scrape_set(scrape, &n);
	close(call(at));                                  /* comes and goes, says nothing */
	ask(at, "GET /other HTTP/1.1\r\nHost: a\r\n\r\n", answer, sizeof answer);
	assert_non_null(strstr(answer, " 404 "));
	ask(at, "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", answer, sizeof answer);
	assert_non_null(strstr(answer, " 405 "));
	ask(at, "\x01\x02 nonsense\r\n\r\n", answer, sizeof answer);
	assert_non_null(strstr(answer, " 400 "));
	ask(at, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", answer, sizeof answer);
	assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
	assert_int_equal(sample(answer, "heddle_samples_total"), 77);
	hd_scrape_close(scrape);
}

static void addresses_beyond_this_machine_are_refused(void **state)
{
	static const char *const bad[] = { "9090", "0.0.0.0:0", "192.0.2.1:9090", "example.org:1" };
	struct hd_scrape *scrape;
	struct hd_clock clock;
	char at[128];

	(void)state;
	hd_clock_real(&clock);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_scrape_open(&scrape, &clock, bad[i], at, sizeof at, &diag), "%s was taken", bad[i]);
		CHECK(*diag.text, "%s: nothing is said", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_histogram_counts_each_step_once_and_upwards),
		cmocka_unit_test(every_name_has_one_type_before_its_samples),
		cmocka_unit_test(events_beyond_the_table_count_as_other),
		cmocka_unit_test(changes_of_members_are_reconfigurations),
		cmocka_unit_test(not_finite_numbers_are_words_of_the_format),
		cmocka_unit_test(a_request_is_answered_whatever_came_before),
		cmocka_unit_test(addresses_beyond_this_machine_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
