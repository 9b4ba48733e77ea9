/* list.h -- the verbs that there are, in the order of the help.
 *
 * A row: NAME, for which a file of a folder beside this one defines hd_verb_NAME (cmd/verbs.h). Adding a verb
 * is such a file and a row. */
#ifndef HD_CMD_LIST_H
#define HD_CMD_LIST_H

#define HD_VERBS(X) \
	X(run) \
	X(resume) \
	X(eval) \
	X(predict) \
	X(worker) \
	X(serve) \
	X(chaos_run) \
	X(chaos_kill) \
	X(chaos_pause) \
	X(chaos_slow) \
	X(chaos_net) \
	X(chaos_disk) \
	X(chaos_spot) \
	X(chaos_lambda) \
	X(scale) \
	X(stop) \
	X(submit) \
	X(jobs) \
	X(explain) \
	X(cancel) \
	X(prio) \
	X(status) \
	X(top) \
	X(ckpt_ls) \
	X(ckpt_show) \
	X(ckpt_verify) \
	X(ckpt_digest) \
	X(ckpt_diff) \
	X(ckpt_export) \
	X(ckpt_gc) \
	X(data_show) \
	X(data_verify) \
	X(data_order) \
	X(data_cat) \
	X(data_tune) \
	X(data_prepare_graph) \
	X(model_ls) \
	X(model_show) \
	X(model_import) \
	X(model_export) \
	X(config_check) \
	X(config_show) \
	X(config_schema) \
	X(doctor) \
	X(bench_step) \
	X(bench_op) \
	X(bench_allreduce) \
	X(bench_comm) \
	X(bench_preempt) \
	X(bench_pull) \
	X(bench_functions) \
	X(bench_spmm) \
	X(profile) \
	X(plan_show) \
	X(plan_check) \
	X(plan_diff) \
	X(plan_draw) \
	X(plan_partition) \
	X(plan_2bw) \
	X(plan_auto) \
	X(plan_ptdp) \
	X(plan_order) \
	X(plan_place) \
	X(plan_buckets) \
	X(plan) \
	X(simulate_spot) \
	X(simulate_graph) \
	X(simulate) \
	X(demo) \
	X(completion) \
	X(sim) \
	X(trace_record) \
	X(trace_dump) \
	X(trace_merge) \
	X(trace_analyze) \
	X(trace_diff) \
	X(trace_whatif) \
	X(trace_open) \
	X(sched_policies) \
	X(sched_solve) \
	X(sched_whatif) \
	X(sched_simulate) \
	X(sched_compare) \
	X(sched_replay) \
	X(sched_bench) \
	X(sched_gen) \
	X(sched_import) \
	X(version)

#endif
