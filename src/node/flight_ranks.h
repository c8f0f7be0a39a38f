/* SPDX-License-Identifier: MIT */
/*
 * Of the process that records: which rank is late (analysis/lateness.h), for each person by itself,
 * so that nobody takes the room of others, nor makes their calls matched with nobody's.
 */
#ifndef CUSCOPE_NODE_FLIGHT_RANKS_H
#define CUSCOPE_NODE_FLIGHT_RANKS_H

#include "capture/capture.h"
#include "node/recorder.h"

struct flight_ranks;

/* What NCCL's calls are and what CUDA's are needed to judge them; both live as long as it. `fired`
 * is told where the rule late_rank fires. */
struct flight_ranks *flight_ranks_new(const struct recorder_settings *settings,
                                      rules_fired_fn fired, void *data);
void flight_ranks_free(struct flight_ranks *ranks);

/* The functions that it needs, where nothing else is recorded. */
void flight_ranks_select(struct selection *selection);

void flight_ranks_event(struct flight_ranks *ranks, const struct event *event);

/*
 * Tells all consumers, so also what is held, which communicator and number each rank has, as a call
 * of recorder.rank: a recording of the last seconds has nothing of how that began. At most
 * FLIGHT_RANKS_TOLD of them; *left are told of by the next calls.
 */
#define FLIGHT_RANKS_TOLD 512

int flight_ranks_remind(struct flight_ranks *ranks, struct capture *capture, size_t *left,
                        struct err *err);

/* Whether RAS may know what nobody else does of ranks, and it is time to ask it again. */
bool flight_ranks_want_ras(struct flight_ranks *ranks, uint64_t now_ns);

/* Each second: judges, and tells by `socket` what is new; in *state what is told with that. */
void flight_ranks_turn(struct flight_ranks *ranks, const struct capture_state *capture,
                       uint64_t now_ns, int socket, struct recorder_state *state);

#endif
