/* SPDX-License-Identifier: MIT */
/* The sources of metrics, each in a file of its own: source_NAME.c. */
#ifndef CUSCOPE_NODE_SOURCES_H
#define CUSCOPE_NODE_SOURCES_H

#include "node/node.h"

extern const struct node_source source_machine;   /* what all processes did together */
extern const struct node_source source_processes; /* what those with series did */
extern const struct node_source source_errors;
extern const struct node_source source_leaks;
extern const struct node_source source_gpus;
extern const struct node_source source_self; /* what the agent itself takes, and lost */
extern const struct node_source source_recorder;
extern const struct node_source source_ranks;
extern const struct node_source source_gpuprobe;

#endif
