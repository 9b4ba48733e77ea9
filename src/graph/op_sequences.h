/* op_sequences.h -- what language models and recurrent networks add: norms, rotary positions, attention with
 * heads of its own, cells. Lines of the op table; op.h joins the families and says what the columns mean.
 *
 * Sources: RMSNORM Zhang and Sennrich, "Root mean square layer normalization" (2019); ROTARY Su et al.,
 * "RoFormer" (2021), halves of a head paired as Hugging Face's llama pairs them; SWIGLU Shazeer, "GLU
 * variants improve transformer" (2020); grouped queries Ainslie et al., "GQA" (2023); LSTM, GRU with the
 * gates and their order of PyTorch's nn.LSTM and nn.GRU; MASK_TOKENS Devlin et al., "BERT" (2018): of the
 * chosen tokens 80 % become `mask`, 10 % any token below `vocab`, 10 % stay. */
#ifndef HD_GRAPH_OP_SEQUENCES_H
#define HD_GRAPH_OP_SEQUENCES_H

#include <stdint.h>

/* The `pad` of attend_pad that hides keys whose ids are others than the query's. */
#define HD_PAD_OTHERS INT32_MIN

#define HD_OPS_SEQUENCES(X) \
	X(RMSNORM,       "rmsnorm",       2, 2, REDUCTION, "f:eps",  "x[..,C] gamma[C] -> y[..,C] = x r gamma, r[..,1] = 1/sqrt(mean of x^2 + eps)") \
	X(ADD_RMSNORM,   "add_rmsnorm",   3, 3, REDUCTION, "f:eps",  "fused: a b gamma -> y = rmsnorm(s), s = a + b, r[..,1]")            \
	X(RMSNORM_DX,    "rmsnorm_dx",    4, 1, REDUCTION, "",       "dy x gamma r -> dx")                                                \
	X(RMSNORM_DG,    "rmsnorm_dg",    3, 1, REDUCTION, "",       "dy x r -> dgamma[C]")                                               \
	X(ROTARY,        "rotary",        1, 1, MAP,       "heads back f:base", "x[N,T,heads D]: elements i and i + D/2 of each head turned by t base^(-2i/D); back: by the opposite angle, which is the gradient") \
	X(SWIGLU,        "swiglu",        2, 1, MAP,       "",       "a b -> silu(a) b, silu(a) = a sigmoid(a)")                          \
	X(SWIGLU_DX,     "swiglu_dx",     3, 2, MAP,       "",       "dy a b -> da, db")                                                  \
	X(ATTEND,        "attend",        3, 2, DENSE,     "heads kv causal window f:scale f:cap", "q[N,T,heads D] k[N,T,kv D] v[N,T,kv D] -> y[N,T,heads D], lse[N,heads,T]; kv divides heads, scale 0: 1/sqrt(D); window > 0: only the last so many of what came before are seen; cap > 0: scores become cap tanh(score / cap)") \
	X(ATTEND_DX,     "attend_dx",     6, 3, DENSE,     "heads kv causal window f:scale f:cap", "dy q k v y lse -> dq, dk, dv")                             \
	X(ATTEND_PAD,    "attend_pad",    4, 2, DENSE,     "heads kv causal pad window f:scale f:cap", "q k v ids i32[N,T]: as attend, but keys where ids is `pad` are not seen; a query that sees none has y 0; pad -2147483648: keys are not seen whose ids are not the query's") \
	X(ATTEND_PAD_DX, "attend_pad_dx", 7, 3, DENSE,     "heads kv causal pad window f:scale f:cap", "dy q k v y lse ids -> dq, dk, dv")                     \
	X(LSTM,          "lstm",          3, 3, DENSE,     "",       "z[N,T,4H] (input products and bias) w[4H,H] b[4H] -> y[N,T,H], cell[N,T,H], gates[N,T,4H] (i f g o); starts from zeros") \
	X(LSTM_DX,       "lstm_dx",       4, 1, DENSE,     "",       "dy w cell gates -> dz")                                             \
	X(GRU,           "gru",           3, 3, DENSE,     "",       "z[N,T,3H] w[3H,H] b[3H] -> y[N,T,H], gates[N,T,3H] (r z n), pre[N,T,H]: what r multiplies inside n") \
	X(GRU_DX,        "gru_dx",        5, 2, DENSE,     "",       "dy w y gates pre -> dz, dg[N,T,3H]: gradient of the recurrent product") \
	X(RECUR_DW,      "recur_dw",      2, 1, DENSE,     "",       "dg[N,T,G] y[N,T,H] -> dw[G,H], sum over samples and t > 0 of dg[t] y[t-1]") \
	X(MASK_TOKENS,   "mask_tokens",   1, 2, RANDOM,    "mask vocab f:share", "x i32[N,T] -> ids, labels: -1 but where chosen; keyed by seed, step and the sample's own tokens, so neither virtual nodes nor slices matter")

#endif
