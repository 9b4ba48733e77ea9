/* prepared.h -- a graph made ready for training: one file, mapped, whose sections are the arrays of the
 * graph.
 *
 * `heddle data prepare-graph` writes it (gnn/prepare.h), graph training reads it. Numbers lie little end
 * first, which is how this program's machines hold them: a section is used where it is mapped.
 *
 *	byte 0      8        12        16        24     32         36       40     44     48        56
 *	     magic  version  sections  vertices  edges  intervals  classes  width  flags  splitter  seed
 *	     64          72     80          128                     4080
 *	     file bytes  loops  duplicates  sections, 32 bytes each  digest of bytes 0 to 4079
 *
 * A section's row: kind u32, 0 u32, offset u64, bytes u64, digest u64 (XXH3-64).
 *
 * 1. Vertices are numbered by (interval, id in the input); interval i owns the ids [interval[i],
 *    interval[i + 1]), at least one. Intervals are a power of two; any run of them is a good part of the
 *    graph (gnn/split.h), so that a map to workers is a list of cuts.
 * 2. `in` has the sources of each vertex's edges, ascending, without doubles and loops; `out` the targets.
 *    Of an undirected graph both are the same arrays. Sums run in this order: it is part of a result.
 * 3. in_degree, out_degree: of the whole graph, without the loop that a norm adds.
 * 4. Features are dense (row-major) or rows of columns, ascending, and values; all of them are finite.
 * 5. A label is in [-1, classes), -1 none; a mask is enum hd_graph_mask, four a byte, lowest bits first.
 * 6. The halo list (I, J): ascending, the vertices of I with an edge into J, which is what a worker of J
 *    needs of I; `halo_back`: those with an edge from J (data/halo.h).
 * 7. Sections stand in the order of their kinds, each at the next multiple of 64, zeros between; the last
 *    ends the file. The digest of the head, which holds those of all sections, is the graph's name.
 * 8. hd_prepared_check() accepts only what keeps all of these: later reads need no check.
 *
 * Ownership: a view borrows the bytes. Threads: any, read-only. */
#ifndef HD_DATA_PREPARED_H
#define HD_DATA_PREPARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "sys/file.h"
#include "data/halo.h"

/* kind, name in messages; in the order of the file */
#define HD_PREPARED_SECTIONS(X) \
	X(INTERVALS, "intervals") \
	X(IN_OFFSETS, "offsets of in-edges") \
	X(IN_SOURCES, "sources of in-edges") \
	X(OUT_OFFSETS, "offsets of out-edges") \
	X(OUT_TARGETS, "targets of out-edges") \
	X(IN_DEGREES, "in-degrees") \
	X(OUT_DEGREES, "out-degrees") \
	X(FEATURE_OFFSETS, "offsets of features") \
	X(FEATURE_COLUMNS, "columns of features") \
	X(FEATURES, "features") \
	X(LABELS, "labels") \
	X(MASKS, "masks") \
	X(IDS, "ids of the input") \
	X(HALO_OFFSETS, "offsets of halo lists") \
	X(HALO_LISTS, "halo lists") \
	X(HALO_BYTES, "bytes of halo lists") \
	X(BACK_OFFSETS, "offsets of backward halo lists") \
	X(BACK_LISTS, "backward halo lists") \
	X(BACK_BYTES, "bytes of backward halo lists")
enum hd_prepared_section {
#define X(id, name) HD_PREPARED_##id,
	HD_PREPARED_SECTIONS(X)
#undef X
	HD_PREPARED_NSECTIONS
};

enum {
	HD_PREPARED_VERSION = 1,
	HD_PREPARED_HEAD = 4096,          /* bytes before the first section */
	HD_PREPARED_ALIGN = 64,
	HD_PREPARED_INTERVALS_CAP = 4096,
	HD_PREPARED_CLASSES_CAP = 1 << 20,
};
enum hd_prepared_flag { HD_PREPARED_DIRECTED = 1, HD_PREPARED_SPARSE = 2 };
enum hd_graph_mask { HD_GRAPH_REST, HD_GRAPH_TRAIN, HD_GRAPH_VALID, HD_GRAPH_TEST };
enum hd_graph_splitter { HD_SPLITTER_OWN, HD_SPLITTER_METIS };       /* which one made the intervals */

/* What the head says. */
struct hd_prepared_head {
	uint64_t nvertices, nedges;       /* edges: directed ones */
	uint32_t nintervals, nclasses, width;
	bool directed, sparse;
	enum hd_graph_splitter splitter;
	uint64_t seed;                    /* of the splitter */
	uint64_t file_bytes;
	uint64_t nloops, nduplicates;     /* of the input's edges, left out */
	struct { uint64_t offset, bytes, digest; } section[HD_PREPARED_NSECTIONS];
};

struct hd_prepared {
	struct hd_prepared_head head;
	struct hd_hash digest;            /* names the graph */
	const uint64_t *interval;
	struct hd_edges in, out;
	const uint32_t *in_degree, *out_degree;
	/* sparse: of vertex v, column[feature_offset[v]] and so on; dense: both NULL */
	const uint64_t *feature_offset; const uint32_t *feature_column;
	const float *feature;
	const int32_t *label;
	const uint8_t *mask;
	const uint32_t *id;               /* of the vertex in the input */
	struct hd_halo halo, halo_back;
};

static inline enum hd_graph_mask hd_prepared_mask(const uint8_t *mask, uint64_t v)
{
	return (enum hd_graph_mask)(mask[v / 4] >> v % 4 * 2 & 3);
}

const char *hd_prepared_section_text(enum hd_prepared_section section);
/* How many bytes each section has, by the numbers of the head; those whose length is drawn from data
 * (features of a sparse graph, halo lists) are taken as the head has them. false: impossible numbers. */
bool hd_prepared_sizes(const struct hd_prepared_head *head, uint64_t bytes[HD_PREPARED_NSECTIONS]);
/* Sets the offsets by the bytes of each section, and file_bytes. false: they do not fit 2^62. */
bool hd_prepared_place(struct hd_prepared_head *head);
/* The head's bytes; its digest with them. */
void hd_prepared_put_head(const struct hd_prepared_head *head, uint8_t bytes[HD_PREPARED_HEAD]);

/* The head and where the sections lie; not what is in them. The bytes are aligned to 64. HD_E_INPUT: no
 * prepared graph, or of another version, or cut off; HD_E_INTEGRITY: the head is not what it was. */
HD_MUST_USE enum hd_err hd_prepared_view(const uint8_t *bytes, size_t len, const char *name,
	struct hd_prepared *graph, struct hd_diag *diag);
/* Reads all of it. HD_E_INTEGRITY: a section is not what it was; HD_E_INPUT: it was, and breaks a rule. */
HD_MUST_USE enum hd_err hd_prepared_check(const struct hd_prepared *graph, const char *name,
	struct hd_diag *diag);
/* Training vertices with a label, and the others by mask (enum hd_graph_mask). */
void hd_prepared_count(const struct hd_prepared *graph, uint64_t count[4]);

/* A prepared graph in a file, mapped; closed by hd_prepared_close(), which takes zeroed ones. With `check`
 * all of it is read, as is needed of a file that comes from elsewhere. */
struct hd_prepared_file { struct hd_prepared graph; struct hd_fs *fs; struct hd_map map; };
HD_MUST_USE enum hd_err hd_prepared_open(struct hd_prepared_file *file, struct hd_fs *fs, const char *path,
	bool check, struct hd_diag *diag);
void hd_prepared_close(struct hd_prepared_file *file);
/* The file begins as one. */
bool hd_prepared_is(struct hd_fs *fs, const char *path);

#endif
