/* list.h -- the schedules that there are, in the order of messages.
 *
 * A row: the maker, which a file of this folder defines as hd_make_MAKER, and the fields of struct
 * hd_schedule_kind (pipeline/generate.h) but for it. Adding a schedule is such a file and a row. */
#ifndef HD_PIPELINE_SCHEDULE_LIST_H
#define HD_PIPELINE_SCHEDULE_LIST_H

#define HD_SCHEDULES(X) \
	X(data,        "data-parallel", "data", HD_UPDATE_FLUSH, 1, 1, "one stage on every rank; ranks share the virtual nodes out", "") \
	X(gpipe,       "gpipe", NULL, HD_UPDATE_FLUSH, 1, 1, "all forwards, then all backwards", "") \
	X(1f1b,        "1f1b", "1f1b-flush", HD_UPDATE_FLUSH, 1, 1, "one forward, one backward; activations of at most p virtual nodes", "") \
	X(1f1b_rr,     "1f1b-rr", NULL, HD_UPDATE_FLUSH, 1, 1, "1f1b with replicated stages; a stage's copies take turns", "") \
	X(interleaved, "interleaved", NULL, HD_UPDATE_FLUSH, 2, HD_MAX_MODEL_CHUNKS, "v chunks a rank: 1/v of the bubble, more transfers", "") \
	X(zb_h1,       "zb-h1", NULL, HD_UPDATE_FLUSH, 1, 1, "split backwards; a third of the bubble of 1f1b, its memory", "") \
	X(zb_h2,       "zb-h2", NULL, HD_UPDATE_FLUSH, 1, 1, "split backwards; no bubble inside, activations of 2p-1", "no bubble from m >= 2p-1") \
	X(zb_v,        "zb-v", NULL, HD_UPDATE_FLUSH, 2, 2, "two chunks placed like a V; no bubble inside, activations of p", "no bubble from m >= 2p-1") \
	X(v_half,      "v-half", NULL, HD_UPDATE_FLUSH, 2, 2, "two chunks placed like a V; half the activations of 1f1b", "") \
	X(v_min,       "v-min", NULL, HD_UPDATE_FLUSH, 2, 2, "two chunks placed like a V; a third of the activations of 1f1b", "") \
	X(dualpipev,   "dualpipev", NULL, HD_UPDATE_FLUSH, 2, 2, "two chunks placed like a V; forwards and backwards in pairs", "m >= 2p") \
	X(zb_auto,     "zb-auto", NULL, HD_UPDATE_FLUSH, 1, 2, "zero bubble by search, for given costs and memory", "") \
	X(delayed,     "stash", "pipedream", HD_UPDATE_STASH, 1, 1, "1f1b without a drain; each virtual node keeps its version", "") \
	X(delayed,     "vsync", NULL, HD_UPDATE_VSYNC, 1, 1, "1f1b without a drain; one version of a virtual node on all stages", "") \
	X(2bw,         "2bw", NULL, HD_UPDATE_2BW, 1, 1, "1f1b without a drain; two versions", "m >= p")

#endif
