#include "daemon/rest.h"

#include <math.h>

#define END { 0 }
#define LIST(...) ((const struct hd_rest_field[]){ __VA_ARGS__ __VA_OPT__(,) END })
#define YES true
#define MAY false

enum { JOB_TEXT = HD_REST_BODY, NAME = 64, PATH = 4096, DEVICES = 1 << 24 };

#define SUMMARY \
	{ "id", HD_REST_INT, YES, 0, 0, "its number; later jobs have larger ones", NULL }, \
	{ "name", HD_REST_TEXT, YES, 0, 0, "job.name of its file, or as asked", NULL }, \
	{ "user", HD_REST_TEXT, YES, 0, 0, "its submitter; empty: not given", NULL }, \
	{ "state", HD_REST_TEXT, YES, 0, 0, "queued, starting, running, draining, done, failed or cancelled", NULL }, \
	{ "step", HD_REST_INT, YES, 0, 0, "steps that are committed", NULL }, \
	{ "steps", HD_REST_INT, YES, 0, 0, "of the whole job", NULL }, \
	{ "priority", HD_REST_REAL, YES, 0, 0, "its weight: twice as much, twice the share", NULL }, \
	{ "scale", HD_REST_INT, YES, 0, 0, "devices it wants at once", NULL }, \
	{ "devices_n", HD_REST_INT, YES, 0, 0, "devices it has now", NULL }, \
	{ "type", HD_REST_TEXT, YES, 0, 0, "of these devices; a+b: several; empty: none", NULL }, \
	{ "rate", HD_REST_REAL, YES, 0, 0, "steps/s now; 0: none measured", NULL }, \
	{ "submitted_s", HD_REST_REAL, YES, 0, 0, "when it came, seconds of the daemon's clock", NULL }, \
	{ "started_s", HD_REST_REAL, YES, 0, 0, "when it first ran; -1: not yet", NULL }, \
	{ "ended_s", HD_REST_REAL, YES, 0, 0, "when it was over; -1: not yet", NULL }, \
	{ "deadline_s", HD_REST_REAL, YES, 0, 0, "when it should be over; -1: none", NULL }, \
	{ "exit", HD_REST_INT, YES, 0, 0, "exit code of the job; -1: not over", NULL }, \
	{ "why", HD_REST_TEXT, YES, 0, 0, "why it is in that state, a sentence; may be empty", NULL }

static const struct hd_rest_field summary[] = { SUMMARY, END };
static const struct hd_rest_field rates[] = {
	{ "type", HD_REST_TEXT, YES, 0, 0, "of devices", NULL },
	{ "steps_s", HD_REST_REAL, YES, 0, 0, "steps/s of the job on `scale` of them", NULL },
	{ "from", HD_REST_TEXT, YES, 0, 0, "asked, measured or guessed", NULL },
	END };
static const struct hd_rest_field job_types[] = {
	{ "type", HD_REST_TEXT, YES, 0, 0, "of devices", NULL },
	{ "devices", HD_REST_INT, YES, 0, 0, "of that type", NULL },
	{ "free", HD_REST_INT, YES, 0, 0, "of these, without a job", NULL },
	{ "steps_s", HD_REST_REAL, YES, 0, 0, "of the job there; 0: cannot run there", NULL },
	{ "share", HD_REST_REAL, YES, 0, 0, "part of the time that the policy gives it there", NULL },
	{ "received_s", HD_REST_REAL, YES, 0, 0, "seconds it had there since the last reset", NULL },
	{ "due_s", HD_REST_REAL, YES, 0, 0, "seconds that its share comes to", NULL },
	{ "priority", HD_REST_REAL, YES, 0, 0, "in the walk of the next round", NULL },
	END };
static const struct hd_rest_field types[] = {
	{ "type", HD_REST_TEXT, YES, 0, 0, "of devices", NULL },
	{ "devices", HD_REST_INT, YES, 0, 0, "of that type", NULL },
	{ "busy", HD_REST_INT, YES, 0, 0, "held by jobs", NULL },
	{ "free", HD_REST_INT, YES, 0, 0, "without a job", NULL },
	{ "lost", HD_REST_INT, YES, 0, 0, "out of service", NULL },
	{ "price_usd_h", HD_REST_REAL, YES, 0, 0, "of one device and hour", NULL },
	{ "speed", HD_REST_REAL, YES, 0, 0, "against the others, while nothing is measured", NULL },
	END };
static const struct hd_rest_field pools[] = {
	{ "type", HD_REST_TEXT, YES, 0, 0, "of devices", NULL },
	{ "devices", HD_REST_INT, YES, 0, 0, "of that type", NULL },
	{ "speed", HD_REST_REAL, YES, 0, 0, "against the others, while nothing is measured", NULL },
	{ "price_usd_h", HD_REST_REAL, YES, 0, 0, "of one device and hour", NULL },
	{ "means", HD_REST_TEXT, YES, 0, 0, "what a device of it is", NULL },
	END };
static const struct hd_rest_field devices[] = {
	{ "id", HD_REST_INT, YES, 0, 0, "its number", NULL },
	{ "name", HD_REST_TEXT, YES, 0, 0, "its name", NULL },
	{ "type", HD_REST_TEXT, YES, 0, 0, "its type", NULL },
	{ "state", HD_REST_TEXT, YES, 0, 0, "what it does", NULL },
	{ "job", HD_REST_INT, YES, 0, 0, "that has it; 0: none", NULL },
	END };
static const struct hd_rest_field policies[] = {
	{ "name", HD_REST_TEXT, YES, 0, 0, "to name it by; with -plain, -packed or -kinds where it has that variant", NULL },
	{ "about", HD_REST_TEXT, YES, 0, 0, "what it does", NULL },
	{ "measure", HD_REST_TEXT, YES, 0, 0, "what its objective is, with its unit; empty: none", NULL },
	{ "built", HD_REST_BOOL, YES, 0, 0, "whether this build has what it needs", NULL },
	{ "variants", HD_REST_TEXTS, YES, 0, 0, "that it has", NULL },
	END };
static const struct hd_rest_field affected[] = {
	{ "id", HD_REST_INT, YES, 0, 0, "of the job", NULL },
	{ "name", HD_REST_TEXT, YES, 0, 0, "of the job", NULL },
	{ "share", HD_REST_REAL, YES, 0, 0, "part of the time that the policy gives it", NULL },
	{ "share_then", HD_REST_REAL, YES, 0, 0, "and would give it", NULL },
	{ "steps_s", HD_REST_REAL, YES, 0, 0, "what that comes to", NULL },
	{ "steps_s_then", HD_REST_REAL, YES, 0, 0, "and would come to", NULL },
	{ "left_s", HD_REST_REAL, YES, 0, 0, "seconds to its end at that rate; -1: it has none", NULL },
	{ "left_s_then", HD_REST_REAL, YES, 0, 0, "and would have", NULL },
	END };
static const struct hd_rest_field events[] = {
	{ "number", HD_REST_INT, YES, 0, 0, "of the event; later ones have larger ones", NULL },
	{ "at_s", HD_REST_REAL, YES, 0, 0, "seconds of the daemon's clock", NULL },
	{ "t", HD_REST_REAL, YES, 0, 0, "seconds since 1970", NULL },
	{ "kind", HD_REST_TEXT, YES, 0, 0, "what happened, a word", NULL },
	{ "job", HD_REST_INT, YES, 0, 0, "to which job; 0: none", NULL },
	{ "text", HD_REST_TEXT, YES, 0, 0, "a sentence", NULL },
	END };

#define THE_JOB \
	{ "job", HD_REST_JOB, YES, 0, NAME, "which: its id, or its name (the youngest of that name)", NULL }

const struct hd_rest_route hd_rest_routes[] = {
	{ "GET", "/v1/jobs", HD_REST_ASK, "jobs", false, "jobs, oldest first, a page at a time",
	  LIST({ "state", HD_REST_TEXT, MAY, 0, NAME, "only jobs in it", NULL },
		{ "after", HD_REST_INT, MAY, 0, INT32_MAX, "only ids above it: of the next page", NULL },
		{ "limit", HD_REST_INT, MAY, 1, 1000, "jobs at most (100)", NULL }),
	  LIST({ "jobs", HD_REST_LIST, YES, 0, 0, "the page", summary },
	  { "more", HD_REST_BOOL, YES, 0, 0, "whether another page follows", NULL }) },
	{ "POST", "/v1/jobs", HD_REST_ASK, "submit", true, "submits a job",
	  LIST({ "job", HD_REST_TEXT, YES, 0, JOB_TEXT, "the text of a job file", NULL },
		{ "folder", HD_REST_TEXT, YES, 0, PATH, "absolute: where the file's relative paths begin", NULL },
		{ "set", HD_REST_TEXTS, MAY, 0, 0, "key=value over the file's", NULL },
		{ "name", HD_REST_TEXT, MAY, 0, NAME, "instead of job.name", NULL },
		{ "priority", HD_REST_REAL, MAY, 1e-6, 1e6, "its weight (job.priority)", NULL },
		{ "deadline_s", HD_REST_REAL, MAY, 1e-3, 1e9, "seconds from now (job.deadline)", NULL },
		{ "scale", HD_REST_INT, MAY, 1, DEVICES, "devices at once (1)", NULL },
		{ "min", HD_REST_INT, MAY, 1, DEVICES, "least devices under an elastic policy (1)", NULL },
		{ "max", HD_REST_INT, MAY, 1, DEVICES, "most devices under an elastic policy (virtual nodes)", NULL },
		{ "rates", HD_REST_NUMBERS, MAY, 0, 1e12, "steps/s on `scale` devices by type; 0: never there", NULL },
		{ "user", HD_REST_TEXT, MAY, 0, NAME, "whose it is", NULL },
		{ "key", HD_REST_TEXT, MAY, 0, NAME, "of this submission: sent again, the same job is answered; another order with it is refused (409)", NULL }),
	  LIST({ "id", HD_REST_INT, YES, 0, 0, "its number", NULL },
	  { "name", HD_REST_TEXT, YES, 0, 0, "its name", NULL },
		{ "run", HD_REST_TEXT, YES, 0, 0, "its run directory", NULL }, { "state", HD_REST_TEXT, YES, 0, 0, "as of a job", NULL },
		{ "why", HD_REST_TEXT, YES, 0, 0, "why it cannot run as things are; empty: it can", NULL }) },
	{ "GET", "/v1/jobs/{job}", HD_REST_ASK, "job", false, "one job", LIST(THE_JOB),
	  LIST(SUMMARY,
		{ "devices", HD_REST_TEXTS, YES, 0, 0, "names of those it has", NULL },
		{ "rates", HD_REST_LIST, YES, 0, 0, "its speeds", rates },
		{ "failures", HD_REST_INT, YES, 0, 0, "runs in a row without a step", NULL },
		{ "run", HD_REST_TEXT, YES, 0, 0, "its run directory", NULL },
		{ "digest", HD_REST_TEXT, YES, 0, 0, "of its state; empty before the end", NULL }) },
	{ "GET", "/v1/jobs/{job}/why", HD_REST_ASK, "explain", false, "why a job waits, or runs where it runs",
	  LIST(THE_JOB, { "policy", HD_REST_BOOL, MAY, 0, 0,
	  "false: without asking the policy what would help", NULL }),
	  LIST({ "id", HD_REST_INT, YES, 0, 0, "its number", NULL },
	  { "name", HD_REST_TEXT, YES, 0, 0, "its name", NULL },
		{ "state", HD_REST_TEXT, YES, 0, 0, "as of a job", NULL },
		{ "code", HD_REST_TEXT, YES, 0, 0, "the leading reason, a word", NULL },
		{ "text", HD_REST_TEXT, YES, 0, 0, "it as a sentence with its numbers", NULL },
		{ "more", HD_REST_TEXTS, YES, 0, 0, "what else is to be said", NULL },
		{ "boundary_s", HD_REST_REAL, YES, 0, 0, "when the next round begins", NULL },
		{ "types", HD_REST_LIST, YES, 0, 0, "the job against each type", job_types }) },
	{ "POST", "/v1/jobs/{job}/cancel", HD_REST_ASK, "cancel", true, "ends a job", LIST(THE_JOB),
	  LIST({ "id", HD_REST_INT, YES, 0, 0, "its number", NULL },
	  { "state", HD_REST_TEXT, YES, 0, 0, "as of a job", NULL }) },
	{ "POST", "/v1/jobs/{job}/priority", HD_REST_ASK, "prio", true, "gives a job another weight",
	  LIST(THE_JOB, { "priority", HD_REST_REAL, YES, 1e-6, 1e6, "the weight", NULL }),
	  LIST({ "id", HD_REST_INT, YES, 0, 0, "its number", NULL },
	  { "priority", HD_REST_REAL, YES, 0, 0, "its weight now", NULL }) },
	{ "GET", "/v1/status", HD_REST_ASK, "status", false, "the whole cluster at a glance", LIST(),
	  LIST({ "pid", HD_REST_INT, YES, 0, 0, "the daemon's process", NULL },
	  { "dir", HD_REST_TEXT, YES, 0, 0, "its folder", NULL },
		{ "policy", HD_REST_TEXT, YES, 0, 0, "that decides", NULL },
		{ "asked_s", HD_REST_REAL, YES, 0, 0, "since when the policy is asked; -1: it has answered", NULL },
		{ "late", HD_REST_TEXT, YES, 0, 0, "the policy does not answer, and what to do; empty: it does", NULL },
		{ "round_s", HD_REST_REAL, YES, 0, 0, "how long a round lasts", NULL },
		{ "now_s", HD_REST_REAL, YES, 0, 0, "the daemon's clock", NULL },
		{ "boundary_s", HD_REST_REAL, YES, 0, 0, "when the next round begins", NULL },
		{ "since_s", HD_REST_REAL, YES, 0, 0, "when this daemon started", NULL },
		{ "counts", HD_REST_NUMBERS, YES, 0, 0, "jobs by state", NULL },
		{ "types", HD_REST_LIST, YES, 0, 0, "devices by type", types },
		{ "running", HD_REST_LIST, YES, 0, 0, "jobs with devices, 100 at most", summary }) },
	{ "GET", "/v1/pools", HD_REST_ASK, "pools", false, "pools and their devices", LIST(),
	  LIST({ "pools", HD_REST_LIST, YES, 0, 0, "by type", pools },
	  { "devices", HD_REST_LIST, YES, 0, 0, "each", devices }) },
	{ "POST", "/v1/devices/{device}", HD_REST_ASK, "device", true, "takes a device out of service, or back",
	  LIST({ "device", HD_REST_TEXT, YES, 0, NAME, "its name", NULL },
		{ "usable", HD_REST_BOOL, YES, 0, 0, "false: out of service", NULL }),
	  LIST({ "device", HD_REST_TEXT, YES, 0, 0, "its name", NULL },
	  { "usable", HD_REST_BOOL, YES, 0, 0, "as it is now", NULL }) },
	{ "GET", "/v1/policies", HD_REST_POLICIES, "", false, "policies that this build has", LIST(),
	  LIST({ "policies", HD_REST_LIST, YES, 0, 0, "one each", policies }) },
	{ "GET", "/v1/policy", HD_REST_ASK, "policy", false, "the policy that decides", LIST(),
	  LIST({ "policy", HD_REST_TEXT, YES, 0, 0, "its name", NULL },
	  { "round_s", HD_REST_REAL, YES, 0, 0, "how long a round lasts", NULL }) },
	{ "POST", "/v1/policy", HD_REST_ASK, "policy", true, "lets another policy decide",
	  LIST({ "policy", HD_REST_TEXT, YES, 0, NAME, "its name", NULL }),
	  LIST({ "policy", HD_REST_TEXT, YES, 0, 0, "its name", NULL },
	  { "round_s", HD_REST_REAL, YES, 0, 0, "how long a round lasts", NULL }) },
	{ "POST", "/v1/whatif", HD_REST_ASK, "whatif", false, "whose share and rate would differ if something else did; changes nothing",
	  LIST({ "job", HD_REST_JOB, MAY, 0, NAME, "whose priority or scale would be another", NULL },
		{ "priority", HD_REST_REAL, MAY, 1e-6, 1e6, "its weight", NULL },
		{ "scale", HD_REST_INT, MAY, 1, DEVICES, "its devices at once; steps/s in proportion", NULL },
		{ "without", HD_REST_JOB, MAY, 0, NAME, "a job that would not be there", NULL },
		{ "add", HD_REST_NUMBERS, MAY, -DEVICES, DEVICES, "devices more by type, fewer below 0", NULL },
		{ "price", HD_REST_NUMBERS, MAY, 0, 1e9, "of a device and hour, by type", NULL },
		{ "policy", HD_REST_TEXT, MAY, 0, NAME, "that would decide", NULL }),
	  LIST({ "policy", HD_REST_TEXT, YES, 0, 0, "that decides", NULL },
	  { "policy_then", HD_REST_TEXT, YES, 0, 0, "that would", NULL },
		{ "jobs", HD_REST_INT, YES, 0, 0, "that were asked about", NULL },
		{ "affected", HD_REST_LIST, YES, 0, 0, "whose share or rate differs, those that lose first", affected }) },
	{ "GET", "/v1/events", HD_REST_STREAM, "events", false, "what happens, as Server-Sent Events: id is the number, event the kind, data the object",
	  LIST({ "after", HD_REST_INT, MAY, 0, INT32_MAX,
	  "only numbers above it (or the header Last-Event-ID)", NULL },
		{ "job", HD_REST_INT, MAY, 1, INT32_MAX, "only of this job", NULL }),
	  events },
	{ "GET", "/v1/events/past", HD_REST_ASK, "events", false, "what happened, a page at a time",
	  LIST({ "after", HD_REST_INT, MAY, 0, INT32_MAX, "only numbers above it: of the next page", NULL },
		{ "limit", HD_REST_INT, MAY, 1, 1000, "events at most (100)", NULL },
		{ "job", HD_REST_INT, MAY, 1, INT32_MAX, "only of this job", NULL }),
	  LIST({ "events", HD_REST_LIST, YES, 0, 0, "the page", events },
	  { "last", HD_REST_INT, YES, 0, 0, "number of the newest event there is", NULL }) },
	{ "POST", "/v1/stop", HD_REST_ASK, "stop", true, "ends the daemon; jobs go on",
	  LIST({ "drain", HD_REST_BOOL, MAY, 0, 0, "true: jobs commit and leave first", NULL }), LIST() },
	{ "GET", "/v1/schema", HD_REST_SCHEMA, "", false, "this table, as an OpenAPI document", LIST(), LIST() },
	{ 0 },
};
