/* int.h -- what the files of the job parser share; private to this folder.
 *
 * job.c walks the file and the sets, value.c reads one value by its type, check*.c
 * prove what concerns several keys, print.c writes. A *place* is where a value was
 * found, for messages: "tiny.yaml:7:19", "-s", "HEDDLE_BATCH_GLOBAL". */
#ifndef HD_JOB_INT_H
#define HD_JOB_INT_H

#include "base/yaml.h"
#include "job/job.h"

struct hd_json_writer;

enum { HD_PLACE_CAP = 320, HD_DOTTED_CAP = 96 };

struct hd_job_reader {
	struct hd_job *job;
	struct hd_arena *arena;
	struct hd_diag *diag;
	struct hd_text *warnings;         /* NULL: unwanted */
	/* [HD_JOB_NKEYS] the defaults; what is auto is resolved as the job's is */
	struct hd_job_value *standard;
	char place[HD_PLACE_CAP];         /* of the value at hand */
	uint8_t origin;
	bool is_graph;                    /* the file has a table graph */
};

/* "batch.global"; returns `out`. */
const char *hd_job_dotted(enum hd_job_key key, char out[HD_DOTTED_CAP]);
/* Begins with the place of the value at hand. */
__attribute__((format(printf, 2, 3)))
enum hd_err hd_job_refuse(const struct hd_job_reader *reader, const char *fmt, ...);
/* The same, of a value that is already there. */
void hd_job_at(struct hd_job_reader *reader, enum hd_job_key key);
__attribute__((format(printf, 2, 3)))
void hd_job_warn(const struct hd_job_reader *reader, const char *fmt, ...);

/* The value at hand stands there in the file. */
void hd_job_place(struct hd_job_reader *reader, const struct hd_yaml_mark *at);

/* Keys and tables of `elastic` that stand alone, too; NULL ends them. */
extern const char *const hd_job_bare[];

/* i-th word of "a|b|c" with its length; NULL past the end. */
const char *hd_job_word(const char *words, uint32_t i, size_t *len);
/* Known, and not in this build: a table, a key (word NULL) or a word of a key. */
bool hd_job_is_absent(const char *table, const char *key, const char *word);
bool hd_job_has_word(const char *words, const char *word);

/* Reads the node by the type of the key into the job's value. */
HD_MUST_USE enum hd_err hd_job_read(struct hd_job_reader *reader, enum hd_job_key key,
	const struct hd_yaml_node *node);
/* Replaces or appends one argument of an ARGS key. */
HD_MUST_USE enum hd_err hd_job_read_arg(struct hd_job_reader *reader, enum hd_job_key key, const char *name,
	const char *text);

/* groups.c: a value of type GROUPS; as JSON, in a fixed order; what a schema says of it. */
HD_MUST_USE enum hd_err hd_job_read_groups(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_value *value);
HD_MUST_USE enum hd_err hd_job_check_groups(struct hd_job_reader *reader);
void hd_job_put_groups(struct hd_json_writer *writer, const char *key, const struct hd_job_value *value);
void hd_job_schema_groups(struct hd_json_writer *writer);

/* terms.c: the same of type TERMS; `check` also says what model.loss is. */
HD_MUST_USE enum hd_err hd_job_read_terms(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_value *value);
HD_MUST_USE enum hd_err hd_job_check_terms(struct hd_job_reader *reader);
void hd_job_put_terms(struct hd_json_writer *writer, const char *key, const struct hd_job_value *value);
void hd_job_schema_terms(struct hd_json_writer *writer);

/* Is it the default? Of a text the words themselves. */
bool hd_job_is_left_out(const struct hd_job_reader *reader, enum hd_job_key key);

/* A table of the file, by its key; graph.functions is the table functions. */
HD_MUST_USE enum hd_err hd_job_read_table(struct hd_job_reader *reader, const struct hd_yaml_node *table);
/* graph.c: the table graph, one of its keys, what it may not stand beside. */
HD_MUST_USE enum hd_err hd_job_read_graph(struct hd_job_reader *reader, const struct hd_yaml_node *table);
HD_MUST_USE enum hd_err hd_job_read_graph_key(struct hd_job_reader *reader, const char *name,
	const char *text);
/* The i-th key that a table graph may have, beside the table functions; NULL past the end. */
const char *hd_job_graph_key(uint32_t i);
HD_MUST_USE enum hd_err hd_job_check_graph(struct hd_job_reader *reader, const struct hd_yaml_node *root);

/* Was it written anywhere? */
bool hd_job_is_given(const struct hd_job *job, enum hd_job_key key);

/* Fills in what depends on other keys and refuses what cannot be together: rules, each of keys of one
 * subject. The first that refuses ends them. A rule reads what rules before it filled in. */
typedef enum hd_err hd_job_rule(struct hd_job_reader *reader);
HD_MUST_USE enum hd_err hd_job_check_each(struct hd_job_reader *reader, hd_job_rule *const *rules,
	size_t nrules);
/* check.c: all. */
HD_MUST_USE enum hd_err hd_job_check(struct hd_job_reader *reader);
/* check_model.c; `parts` are the weights that it begins with, adapters and shards. */
HD_MUST_USE enum hd_err hd_job_check_class_weights(struct hd_job_reader *reader);
HD_MUST_USE enum hd_err hd_job_check_parts(struct hd_job_reader *reader);
HD_MUST_USE enum hd_err hd_job_check_model(struct hd_job_reader *reader);
/* check_measures.c: evaluations, targets, and what goes by a measure. */
HD_MUST_USE enum hd_err hd_job_check_measures(struct hd_job_reader *reader);
/* check_workers.c: elastic, comm and workers. */
HD_MUST_USE enum hd_err hd_job_check_workers(struct hd_job_reader *reader);
/* parallel.c: the keys of `parallel:` together. */
HD_MUST_USE enum hd_err hd_job_check_parallel(struct hd_job_reader *reader);
/* cuts.c; the number that the text begins with is passed by. */
HD_MUST_USE enum hd_err hd_job_check_cuts(struct hd_job_reader *reader);
bool hd_job_take_number(const char **at, uint32_t *number);
/* copies.c; hd_job_stage_copies() of what the text begins with, which is passed by where it is some. */
HD_MUST_USE enum hd_err hd_job_check_copies(struct hd_job_reader *reader);
uint32_t hd_job_take_copies(const char **at, uint32_t *copies);

#endif
