/* SPDX-License-Identifier: MIT */
/*
 * The rules of the flight recorder that judge calls (error, slow_step), as they are seen one by
 * one. Each fires at most once a second: what comes more often is held back by rules_allow()
 * anyway, and those who are told are not to be flooded.
 */
#ifndef CUSCOPE_NODE_RULES_CALLS_H
#define CUSCOPE_NODE_RULES_CALLS_H

#include "node/rules.h"
#include "trace/event.h"

struct call_rules;

/* `last_ns`: of the window; a step that has not ended is told before its begin leaves that. */
struct call_rules *call_rules_new(const struct rules_settings *settings, uint64_t last_ns,
                                  void (*fired)(void *data, enum rule rule, const char *why),
                                  void *data);
void call_rules_free(struct call_rules *rules);

void call_rules_event(struct call_rules *rules, const struct event *event);

/* To be called now and then. */
void call_rules_tick(struct call_rules *rules, uint64_t now_ns);

/* As steps_figures() tells. */
void call_rules_figures(const struct call_rules *rules, uint64_t *judged, uint64_t *forgotten);

#endif
