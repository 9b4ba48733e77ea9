/* op_sequences_rules.h -- rules of the lines of op_sequences.h (private to the room; their bodies:
 * op_sequences.c, and op_norm.c). RULES_<OP>: shape, gradient, cost. NULL: what is not differentiated
 * again. */
#ifndef HD_GRAPH_OP_SEQUENCES_RULES_H
#define HD_GRAPH_OP_SEQUENCES_RULES_H

#include "graph/op_rules.h"

hd_shape_rule hd_shape_rotary, hd_shape_swiglu_dx,
	hd_shape_attend, hd_shape_attend_dx, hd_shape_lstm, hd_shape_lstm_dx, hd_shape_gru, hd_shape_gru_dx,
	hd_shape_recur_dw,
	hd_shape_mask_tokens;
hd_grad_rule hd_grad_rotary, hd_grad_swiglu, hd_grad_attend, hd_grad_lstm, hd_grad_gru;
hd_cost_rule hd_cost_attend, hd_cost_attend_dx, hd_cost_recurrent, hd_cost_recur_dw;

#define RULES_RMSNORM       hd_shape_norm, hd_grad_norm, hd_cost_elementwise
#define RULES_ADD_RMSNORM   hd_shape_add_norm, hd_grad_add_norm, hd_cost_elementwise
#define RULES_RMSNORM_DX    hd_shape_norm_dx, NULL, hd_cost_elementwise
#define RULES_RMSNORM_DG    hd_shape_norm_dg, NULL, hd_cost_elementwise
#define RULES_ROTARY        hd_shape_rotary, hd_grad_rotary, hd_cost_elementwise
#define RULES_SWIGLU        hd_shape_pair, hd_grad_swiglu, hd_cost_elementwise
#define RULES_SWIGLU_DX     hd_shape_swiglu_dx, NULL, hd_cost_elementwise
#define RULES_ATTEND        hd_shape_attend, hd_grad_attend, hd_cost_attend
#define RULES_ATTEND_DX     hd_shape_attend_dx, NULL, hd_cost_attend_dx
#define RULES_ATTEND_PAD    hd_shape_attend, hd_grad_attend, hd_cost_attend
#define RULES_ATTEND_PAD_DX hd_shape_attend_dx, NULL, hd_cost_attend_dx
#define RULES_LSTM          hd_shape_lstm, hd_grad_lstm, hd_cost_recurrent
#define RULES_LSTM_DX       hd_shape_lstm_dx, NULL, hd_cost_recurrent
#define RULES_GRU           hd_shape_gru, hd_grad_gru, hd_cost_recurrent
#define RULES_GRU_DX        hd_shape_gru_dx, NULL, hd_cost_recurrent
#define RULES_RECUR_DW      hd_shape_recur_dw, NULL, hd_cost_recur_dw
#define RULES_MASK_TOKENS   hd_shape_mask_tokens, NULL, hd_cost_elementwise

#endif
