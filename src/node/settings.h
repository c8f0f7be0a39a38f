/* SPDX-License-Identifier: MIT */
/* All that the node agent can be told, by its configuration or its options. */
#ifndef CUSCOPE_NODE_SETTINGS_H
#define CUSCOPE_NODE_SETTINGS_H

#include "node/config.h"

enum node_names { NODE_NAMES_CUSCOPE, NODE_NAMES_GPUPROBE };

/* The flight recorder; recorder_settings.c has what the keys mean. */
struct node_recorder {
	/* [recorder] */
	bool enabled;
	uint64_t last_ns, memory_bytes, after_ns, max_overhead, gpu_window_ns;
	/* [spool] */
	char *directory;
	uint64_t spool_bytes, spool_files, keep_free_bytes;
	unsigned spool_refuse;
	/* [rules] */
	bool xid, leak, request;
	char *errors, *step_range;
	uint64_t memory_percent, idle_ns, slow_step, step_least_ns, cool_down_ns, per_hour;
};

struct node_settings {
	/* [agent] */
	char *listen;
	uint64_t interval_ns;
	uint64_t top;         /* processes with series of their own */
	uint64_t age_ns;      /* how old they are by then */
	unsigned names;       /* enum node_names */
	uint64_t connections; /* of clients, at a time */
	struct config_list libraries;
	/* [tls] */
	char *certificate, *key, *token;
	/* [leaks] */
	uint64_t leak_interval_ns, leak_older_ns, leak_places;
	/* [labels] */
	struct config_list label_env;
	/* [kubelet] */
	char *kubelet_url, *kubelet_token, *kubelet_authority; /* url "": it is not asked */
	struct node_recorder recorder;
};

/* Rows of the sections above. */
extern const struct config_table config_agent, config_tls, config_leaks, config_labels;
extern const struct config_table config_kubelet, config_recorder, config_spool, config_rules;

/* Both are copied whole: what a line says is taken over only where the whole file is right. */
void settings_copy(struct node_settings *into, const struct node_settings *from);

#endif
