/* slurm_text.h -- what Slurm's commands print, as values, and the batch script that it is given (pure).
 *
 * 1. A line that is not understood as a whole is refused, and changes nothing.
 * 2. Texts of Slurm that are kept are printable: users see them.
 * 3. A script holds each word quoted; what comes from a job is data in it, never a command, but for the
 *    options in launch.slurm.extra, which the user writes for sbatch.
 *
 * Formats as of Slurm 22.05. Plain values; threads: any. */
#ifndef HD_LAUNCH_SLURM_TEXT_H
#define HD_LAUNCH_SLURM_TEXT_H

#include "base/text.h"
#include "launch/launcher.h"

enum { HD_SLURM_ID = 32, HD_SLURM_NODE = 64, HD_SLURM_REASON = 80 };

/* squeue and sinfo are asked for exactly these */
#define HD_SLURM_FIELDS "JobArrayID:|,State:|,exit_code:|,RestartCnt:|,NodeList:|,Reason:|"
#define HD_SLURM_NODE_FIELDS "%N|%o|%T|%G|%f|%P"

enum hd_slurm_stage { HD_SLURM_WAITS, HD_SLURM_RUNS, HD_SLURM_OVER };

/* One job of `squeue -r`: of an array each. */
struct hd_slurm_line {
	char id[HD_SLURM_ID];             /* "77_3" */
	char state[24];                   /* "PREEMPTED" */
	char node[HD_SLURM_NODE], reason[HD_SLURM_REASON];         /* "" where there is none */
	enum hd_slurm_stage stage;
	int code;                         /* of one that is over; 128 + signal */
	uint32_t restarts;
};
/* HD_E_INPUT: it is none. */
HD_MUST_USE enum hd_err hd_slurm_line_parse(const char *line, size_t len, struct hd_slurm_line *out,
	struct hd_diag *diag);

/* Of such a text, all that are understood, in the arena. HD_E_INPUT: of some line that is not so, and the
 * others are there; HD_E_NOMEM. */
struct hd_slurm_lines { const struct hd_slurm_line *at; uint32_t n; };
HD_MUST_USE enum hd_err hd_slurm_lines_parse(const char *text, size_t len, struct hd_arena *arena,
	struct hd_slurm_lines *out, struct hd_diag *diag);
/* squeue's word for a state; false: it has none such. */
bool hd_slurm_stage(const char *word, enum hd_slurm_stage *stage);
/* An exit code, or 128 + signal, of a status of wait(2). */
int hd_slurm_code(uint64_t status);
/* Printable text as users see it, cut if it is too long; false: it is not printable. */
bool hd_slurm_word(const char *text, size_t len, char *to, size_t cap);

/* What `sbatch --parsable` prints: 77, or 77;cluster. */
HD_MUST_USE enum hd_err hd_slurm_id_parse(const char *text, size_t len, char id[HD_SLURM_ID],
	struct hd_diag *diag);

/* A line of sinfo: a node, the address by which Slurm calls it, its state, its type: of its first GPU, else
 * its first feature, else "node"; and the option of sbatch that asks for it ("": none does). A node of
 * several
 * partitions has a line in each; usual: of the default one, or Slurm did not say. */
struct hd_batch_node { char name[HD_SLURM_NODE], address[HD_SLURM_NODE], state[24];
	struct hd_launcher_type type; bool usual; };
HD_MUST_USE enum hd_err hd_slurm_node_parse(const char *line, size_t len, struct hd_batch_node *out,
	struct hd_diag *diag);

/* Of a text of sinfo all that are understood, in the arena. */
struct hd_batch_nodes { const struct hd_batch_node *at; uint32_t n; };
HD_MUST_USE enum hd_err hd_slurm_nodes_parse(const char *text, size_t len, struct hd_arena *arena,
	struct hd_batch_nodes *out, struct hd_diag *diag);
/* Of a node with these words of Slurm ("" or "(null)": it has none). */
void hd_slurm_type_of(const char *gres, const char *features, struct hd_launcher_type *type);

/* The types that nodes have, by name; usual: of the default partition alone. Those whose state says that
 * nothing can run there count, as they may come back. HD_E_INVAL: there are too many. */
HD_MUST_USE enum hd_err hd_slurm_types(const struct hd_batch_nodes *nodes, bool usual,
	struct hd_launcher_types *types, struct hd_diag *diag);

/* What is wrong when a command of Slurm failed with this text, and what to do: HD_E_AGAIN, it may be well
 * later (the controller does not answer); else for good. */
HD_MUST_USE enum hd_err hd_slurm_refusal(const char *command, const char *text, size_t len,
	struct hd_diag *diag);

/* A time limit as sbatch takes it: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S; false: it is none of these. */
bool hd_slurm_time(const char *text, double *seconds);

/* HD_E_INVAL: an option that sbatch would not get as it is, or that is the launcher's own. */
HD_MUST_USE enum hd_err hd_slurm_check(const struct hd_launcher_settings *settings, struct hd_diag *diag);
/* No option of launch.slurm.extra says how much of a node a place takes. */
bool hd_slurm_takes_whole_nodes(const struct hd_launcher_settings *settings);
/* The script of one place. */
void hd_slurm_script(struct hd_text *text, const struct hd_launcher_spec *spec);

/* The next line of a text, without its end; false: there is none. */
bool hd_slurm_next_line(const char **at, const char *end, const char **line, size_t *len);

#endif
