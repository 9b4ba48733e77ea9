/* testing_slurmrestd.h -- a process that plays slurmrestd v0.0.38 for launcher_test: what it is asked is done
 * by the test's scripts in a folder, which play the commands. The file `rest.does` there says how it fails:
 *
 *	500      it answers that, and does nothing       half   it submits, and half of the answer is sent
 *	deny     it answers 401                          slow   it answers once the file says something else
 *	leave    it ends the connection
 *
 * Each request's first line is added to the file `rest.log`. */
#ifndef HD_LAUNCH_TESTING_SLURMRESTD_H
#define HD_LAUNCH_TESTING_SLURMRESTD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/http_head.h"
#include "base/json.h"
#include "sys/clock.h"
#include "tests/check.h"

static inline void srd_file(const char *name, const char *mode, const char *text)
{
	FILE *file = fopen(name, mode);

	if (!file || fputs(text, file) < 0 || fclose(file))
		_exit(3);
}

static inline bool srd_does(const char *what)
{
	char line[20] = "";
	FILE *file = fopen("rest.does", "r");

	if (!file)
		return false;
	if (!fgets(line, sizeof line, file))
		line[0] = '\0';
	fclose(file);
	return !strcmp(line, what);
}

/* What a program prints, into text. */
static inline void srd_run(const char *command, char *text, size_t cap)
{
	FILE *pipe = popen(command, "r");        /* NOLINT: words of the test alone */
	size_t n = pipe ? fread(text, 1, cap - 1, pipe) : 0;

	text[n] = '\0';
	if (!pipe || pclose(pipe) < 0)
		_exit(4);
}

/* Lines of squeue as jobs. */
static inline void srd_jobs(char *out, size_t cap)
{
	char lines[4000], id[20], state[20], *line = lines;
	unsigned code;

	srd_run("./squeue", lines, sizeof lines);
	snprintf(out, cap, "{\"errors\": [], \"jobs\": [");
	for (int n = 0; *line; line += strcspn(line, "\n"), line += *line == '\n', n++) {
		if (sscanf(line, "%19[0-9_]|%19[A-Z]|%u", id, state, &code) != 3)
			_exit(5);
		char *index = strchr(id, '_');
		*index++ = '\0';
		snprintf(out + strlen(out), cap - strlen(out), "%s{\"name\": \"heddle-t-1\", \"job_id\": 9, "
			"\"array_job_id\": %s, \"array_task_id\": %s, \"array_task_string\": \"\", "
			"\"job_state\": \"%s\", \"exit_code\": %u, \"nodes\": \"a\", \"restart_cnt\": 0, "
			"\"state_reason\": \"None\"}", n ? "," : "", id, index, state, code);
	}
	snprintf(out + strlen(out), cap - strlen(out), "]}");
}

static inline void srd_submit(const char *body, size_t len, char *out, size_t cap)
{
	const struct hd_json *all, *job;
	const char *script = "", *array = "";
	char command[100], id[20];
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	if (hd_json_parse(&arena, "body", body, len, &all, NULL) ||
		hd_json_get_text(all, "script", &script, NULL) ||
		hd_json_get(all, "job", HD_JSON_OBJECT, &job, NULL) ||
		hd_json_get_text(job, "array", &array, NULL))
		_exit(6);
	srd_file("rest.sh", "w", script);
	snprintf(command, sizeof command, "./sbatch --parsable --array=%s $PWD/rest.sh", array);
	srd_run(command, id, sizeof id);
	snprintf(out, cap, "{\"errors\": [], \"job_id\": %.*s}", (int)strcspn(id, "\n"), id);
	hd_arena_finish(&arena);
}

static inline int srd_answer(const char *target, const char *method, const char *body, size_t len, char *out,
	size_t cap)
{
	static const char at[] = "/slurm/v0.0.38/";
	char command[200];

	snprintf(out, cap, "{\"errors\": []}");
	if (strncmp(target, at, strlen(at)) != 0)
		return 404;
	target += strlen(at);
	if (!strcmp(target, "jobs"))
		srd_jobs(out, cap);
	else if (!strcmp(target, "nodes"))
		snprintf(out, cap, "{\"nodes\": [{\"name\": \"a\", \"address\": \"127.0.0.1\", \"state\": "
		"\"idle\", "
			"\"partitions\": [\"all\"]}, {\"name\": \"b\", \"address\": \"127.0.0.1\", "
			"\"state\": \"idle\", \"partitions\": [\"all\"]}]}");
	else if (!strcmp(target, "partitions"))
		snprintf(out, cap, "{\"partitions\": [{\"name\": \"all\", \"flags\": [\"default\"]}]}");
	else if (!strcmp(target, "job/submit"))
		srd_submit(body, len, out, cap);
	else if (!strcmp(method, "POST")) {      /* all have begun */
		snprintf(out, cap, "{\"errors\": [{\"error_number\": 2073, \"error\": \"Job is no longer "
			"pending execution\"}]}");
		return 500;
	} else if (!strcmp(method, "DELETE")) {
		snprintf(command, sizeof command, "kill $(cat job.%.40s); rm -f job.%.40s", target + 4,
			target + 4);
		srd_run(command, (char[8]){ "" }, 8);
	}
	return 200;
}

static inline void srd_serve(int conn)
{
	static char in[64 << 10], body[64 << 10], out[16 << 10], head[240], target[200], method[10];
	struct hd_http_head h;
	struct hd_clock clock;
	size_t n = 0, len = 0;

	hd_clock_real(&clock);
	for (;;) {
		ssize_t got = recv(conn, in + n, sizeof in - n, 0);
		if (got <= 0)
			return;
		n += (size_t)got;
		if (!hd_http_read_head(HD_HTTP_A_REQUEST, in, n, &h) && (!h.has_length ||
			!hd_http_read_body(&h, in + h.len_bytes, n - h.len_bytes, false, body, sizeof body,
			&len)))
			break;
	}
	snprintf(target, sizeof target, "%.*s", (int)h.target.len, h.target.at);
	snprintf(method, sizeof method, "%.*s", (int)h.method.len, h.method.at);
	snprintf(head, sizeof head, "%s %s\n", method, target);
	srd_file("rest.log", "a", head);
	while (srd_does("slow"))
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 5000000);
	if (srd_does("leave"))
		return;
	const bool half = srd_does("half") && strstr(target, "/job/submit");
	int status = srd_does("500") ? 500 : srd_does("deny") ? 401 : 0;
	snprintf(out, sizeof out, "no JSON");
	if (!status)
		status = srd_answer(target, method, body, len, out, sizeof out);
	snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", status, strlen(out));
	if (send(conn, head, strlen(head), MSG_NOSIGNAL) > 0)
		(void)!send(conn, out, half ? strlen(out) / 2 : strlen(out), MSG_NOSIGNAL);
}

/* Its socket is `rest` in the folder. It ends with the test. */
static inline pid_t slurmrestd_begin(const char *dir)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof un.sun_path, "%s/rest", dir);
	unlink(un.sun_path);
	CHECK(listener >= 0 && !bind(listener, (struct sockaddr *)&un, sizeof un) && !listen(listener, 8),
		"no socket %s", un.sun_path);
	const pid_t pid = fork();
	CHECK(pid >= 0, "no process");
	if (pid) {
		close(listener);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (chdir(dir))
		_exit(2);
	for (;;) {
		const int conn = accept(listener, NULL, NULL);
		if (conn < 0)
			_exit(0);
		srd_serve(conn);
		shutdown(conn, SHUT_RDWR);        /* what was submitted has a copy of it */
		close(conn);
	}
}

static inline void slurmrestd_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
