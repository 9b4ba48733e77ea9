/* rest.h -- REST interface of the scheduler daemon: one table of routes, and validation of every request.
 *
 * A request is a value, a response is a value: http.h brings the one from a socket and takes the other there,
 * fuzzing and tests call hd_rest_admit and hd_rest_reply themselves. Routes map onto the questions of a
 * handler (frontend.h lists them).
 *
 * What is refused, in this order, with the status in brackets; nothing of a refused request reaches the
 * handler:
 * 1. Another version than HTTP/1.1 [505]; another method than GET and POST [405]; a target longer than
 *    HD_REST_TARGET [414], or with bytes other than letters, digits and -._~/?&=, [400] (no escapes: no name
 *    of ours needs one).
 * 2. More than HD_REST_HEADERS headers [431]; a header whose name is no token, or twice one of those that are
 *    read; any Transfer-Encoding; a Content-Length that is no number [400].
 * 3. A Host other than a loopback name of this machine with the port served [421]: this stops DNS rebinding.
 * 4. An Origin that is not one of these [403].
 * 5. Where a token is asked for (TCP): no `Authorization: Bearer TOKEN`, or another token [401]; compared in
 *    constant time. The files of the page (page.h) alone are for everybody.
 *    Of a scheduler with users: an account or a token that is no user's [403 and 401].
 * 6. No such path [404]; not with this method [405]; a body with GET [400]; a body above HD_REST_BODY [413],
 *    or one that does not call itself application/json [415] (a page of
 *    another site needs a CORS preflight for that, which is never answered).
 * 7. A member or argument that the route's table does not have, or of another kind or range [400].
 *
 * 8. A question that the caller's role may not ask (users.h) [403].
 *
 * An error is {"error": a sentence, "code": of base/err.h, "exit": what the program would exit with}.
 *
 * Pure; everything lies in the arena of the call. */
#ifndef HD_DAEMON_REST_H
#define HD_DAEMON_REST_H

#include "sys/crypto_key.h"
#include "daemon/answers.h"
#include "daemon/frontend.h"
#include "daemon/page.h"

enum {
	HD_REST_TARGET = 1024,                    /* bytes of a request's target */
	HD_REST_HEADERS = 64,
	HD_REST_HEADER_BYTES = 16 << 10,          /* of all headers with the request line */
	HD_REST_BODY = 1 << 20,
	HD_REST_ANSWER = 32 << 20,                /* 1000 jobs are some 300 KiB */
	HD_REST_PARTS = 6,                        /* of a path */
	HD_REST_ARGUMENTS = 8,                    /* of a query */
};

/* What a member of a request is; those of answers: answers.h. */
/*        id        words for messages              type in the schema */
#define HD_REST_KINDS(X) \
	X(INT,     "an integer",                 "\"type\":\"integer\"")                                                        \
	X(REAL,    "a number",                   "\"type\":[\"number\",\"string\"]")      /* "nan", "inf" and "-inf" are texts */   \
	X(TEXT,    "a text",                     "\"type\":\"string\"")                                                         \
	X(BOOL,    "true or false",              "\"type\":\"boolean\"")                                                        \
	X(JOB,     "the id or name of a job",    "\"type\":[\"integer\",\"string\"]")                                           \
	X(TEXTS,   "a list of texts",            "\"type\":\"array\",\"items\":{\"type\":\"string\"}")                          \
	X(NUMBERS, "an object of numbers",       "\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}")

enum hd_rest_kind {
#define X(id, words, type) HD_REST_##id,
	HD_REST_KINDS(X)
#undef X
};

struct hd_rest_field {
	const char *name;                         /* NULL ends a list */
	enum hd_rest_kind kind;
	bool needed;                              /* must be there */
	/* of numbers, of each of NUMBERS; of a text its longest in `max`. 0 and 0: any */
	double min, max;
	const char *about;
};

enum hd_rest_how {
	HD_REST_ASK,                              /* the handler is asked `what` */
	/* Server-Sent Events: `what` is asked again and again (http.h) */
	HD_REST_STREAM,
	HD_REST_SCHEMA, HD_REST_POLICIES,         /* known here */
	HD_REST_METRICS,                          /* the answer to `what`, as Prometheus reads it */
};

struct hd_rest_route {
	/* "/v1/jobs/{job}/why": a part in braces is a member of `ask` */
	const char *method, *path;
	enum hd_rest_how how;
	const char *what;
	bool changes;                             /* leaves a line in the audit log */
	bool run;                                 /* of one run's page, too (run_page.h) */
	const char *about;
	const struct hd_rest_field *ask;          /* members of path, query or body */
	const struct hd_fields *answer;           /* of the answer, of each event of a stream */
};
extern const struct hd_rest_route hd_rest_routes[];       /* ends with method == NULL */

struct hd_rest_header { const char *name, *value; };

struct hd_rest_request {
	const char *method, *target, *version;    /* "GET", "/v1/jobs?limit=3", "HTTP/1.1" */
	const struct hd_rest_header *header;
	size_t nheaders;
	/* [len]; empty where hd_rest_admit is asked before it came */
	const char *body;
	size_t len;
};

/* Access control. */
struct hd_rest_gate {
	/* NULL: no token needed: no process of another user can reach the socket */
	const struct hd_key *token;
	uint16_t port;                            /* that Host must name; 0: none */
	bool run;                                 /* only routes that are of one run's page, too */
	/* says whose a request is; NULL: it has one owner */
	const struct hd_handler *handler;
	struct hd_credential from;                /* of the connection; its token stands in the request */
};

struct hd_rest_response {
	int status;
	const char *type, *allow;                 /* media type; what a 405 allows, else NULL */
	const struct hd_page_file *file;          /* that it is; NULL: an answer */
	const char *body;                         /* [len], in the arena */
	size_t len;
	enum hd_err err;                          /* what it says; HD_OK: an answer */
	/* that a job was handed in for, or that the request named; "": none. For the audit log */
	char account[HD_USERS_NAME + 1];
};

/* The route that was found, with what stands in path and query. */
struct hd_rest_way {
	const struct hd_rest_route *route;
	const struct hd_page_file *file;          /* instead of a route */
	bool known;                               /* the browser has the file as it is */
	bool run;                                 /* as of the gate */
	size_t nparts, nargs;
	struct hd_rest_part { const struct hd_rest_field *field; const char *text;
		} part[HD_REST_PARTS + HD_REST_ARGUMENTS];
	size_t body_bytes;                        /* that the request announces */
	struct hd_caller by;
	struct hd_credential credential;          /* that says so; its text is the request's */
};

/* Rules 1 to 6 and the arguments of rule 7: all that can be said before the body. False: `no` is the
 * response. */
HD_MUST_USE bool hd_rest_admit(const struct hd_rest_gate *gate, const struct hd_rest_request *request,
	struct hd_arena *arena, struct hd_rest_way *way,
	struct hd_rest_response *no);

/* The response to an admitted request that came with `body`. */
void hd_rest_reply(const struct hd_handler *handler, const struct hd_rest_way *way, const char *body,
	size_t len, struct hd_arena *arena,
	struct hd_rest_response *response);
/* One that says no. */
void hd_rest_refuse(struct hd_rest_response *response, int status, enum hd_err err, const char *text,
	struct hd_arena *arena);
int hd_rest_status(enum hd_err err);          /* 404 of HD_E_NOTFOUND... */

/* An answer to "status" in Prometheus's text format 0.0.4; what it lacks is left out. */
void hd_rest_metrics(const struct hd_json *status, struct hd_text *text);

/* Every route with its members as an OpenAPI 3.1 document: what GET /v1/schema answers; `run`: those of one
 * run's page. */
void hd_rest_schema(bool run, struct hd_json_writer *w);

#endif
