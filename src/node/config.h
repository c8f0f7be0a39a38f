/* SPDX-License-Identifier: MIT */
/*
 * The configuration of the node agent: an INI file. Each key is a row of a table: section, name,
 * type, range, and where its value goes in struct node_settings. A part of the agent has a table of
 * its own beside its settings, and a line in `config_tables` (config_tables.c).
 *
 * A mistake is told with file, line and what is allowed, and leaves the settings alone.
 */
#ifndef CUSCOPE_NODE_CONFIG_H
#define CUSCOPE_NODE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum config_type {
	CONFIG_TEXT,     /* char *, never NULL */
	CONFIG_NUMBER,   /* uint64_t from least to most */
	CONFIG_DURATION, /* uint64_t of ns, likewise */
	CONFIG_BYTES,    /* uint64_t, likewise */
	CONFIG_FLAG,     /* bool: yes or no */
	CONFIG_WORD,     /* unsigned: the index of one of `words` */
	CONFIG_LIST,     /* struct config_list: words with commas, at most `most` of them */
};

#define CONFIG_LIST_MOST 32

struct config_list {
	size_t n;
	char *words[CONFIG_LIST_MOST];
};

struct config_row {
	const char *key;
	enum config_type type;
	size_t offset;     /* in struct node_settings */
	const char *first; /* its value where the file says nothing, as in the file */
	uint64_t least, most;
	const char *const *words; /* up to a NULL */
	const char *help;         /* one sentence; said where a value is wrong, too */
	/* What else a value has to be; a sentence ("is no ...") where it is not, which is said of
	 * texts and lists. May be NULL. */
	const char *(*wrong)(const char *value);
};

struct config_table {
	const char *section;
	const struct config_row *rows;
	size_t n;
};

extern const struct config_table *const config_tables[]; /* up to a NULL */

struct node_settings;

/* All keys as they are without a file. */
void config_begin(struct node_settings *settings);

/* One key as a command line has it: 0, or -EINVAL and what is allowed. */
int config_set(struct node_settings *settings, const char *section, const char *key,
               const char *value, struct err *err);

/* What a file says, over what is there. `path` is for sentences. */
int config_read_text(struct node_settings *settings, const char *path, const char *text,
                     struct err *err);

/* The same of a file, which nobody else may be able to write. */
int config_read_file(struct node_settings *settings, const char *path, struct err *err);

void config_end(struct node_settings *settings); /* frees what it holds */

/* Every section and key with its help and its first value, as a file that changes nothing. */
void config_write_example(struct buf *out);

/* ---- settings ------------------------------------------------------------------------------ */

/* All that the node agent can be told, by its configuration or its options. */

enum node_names { NODE_NAMES_CUSCOPE, NODE_NAMES_GPUPROBE };

/* The flight recorder; recorder.c has what the keys mean. */
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
	uint64_t late_rank; /* percent */
	/* [ranks] */
	bool ranks, ras;
	uint64_t rank_series;
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
	/* [account] */
	bool account;
	uint64_t account_processes;
	/* [leaks] */
	uint64_t leak_interval_ns, leak_older_ns, leak_places;
	/* [labels] */
	struct config_list label_env;
	/* [kubelet] */
	char *kubelet_url, *kubelet_token, *kubelet_authority; /* url "": it is not asked */
	struct node_recorder recorder;
};

/* Rows of the sections above. */
#define ACCOUNT_PROCESSES_MOST 64

extern const struct config_table config_agent, config_tls, config_account, config_leaks;
extern const struct config_table config_labels;
extern const struct config_table config_kubelet, config_recorder, config_spool, config_rules;
extern const struct config_table config_ranks;

/* Both are copied whole: what a line says is taken over only where the whole file is right. */
void settings_copy(struct node_settings *into, const struct node_settings *from);

#endif
