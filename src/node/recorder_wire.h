/* SPDX-License-Identifier: MIT */
/*
 * What the flight recorder's two halves say to each other, on a SOCK_SEQPACKET socket: the thread
 * in the node agent (recorder.h), and the process that records (recorder_process.h). A message is
 * one struct, whole. Texts end within their arrays, whoever sent them: recorder_receive().
 */
#ifndef CUSCOPE_NODE_RECORDER_WIRE_H
#define CUSCOPE_NODE_RECORDER_WIRE_H

#include "node/recorder_settings.h"

enum recorder_kind {
	RECORDER_SETUP, /* to the process, the first thing */
	RECORDER_SAVE,  /* to it: write what you hold */
	RECORDER_READY, /* from it: it records */
	RECORDER_STATE, /* every second */
	RECORDER_FIRED, /* a rule */
	RECORDER_SAVED, /* what came of RECORDER_SAVE */
	RECORDER_NOTICE,
};

/* Why a recording came to nothing; the words are labels of a metric. */
enum recorder_why {
	RECORDER_WHY_SPOOL = SPOOL_WHY_COUNT, /* below: enum spool_why */
	RECORDER_NOT_RUNNING = RECORDER_WHY_SPOOL,
	RECORDER_BUSY,    /* others wait already */
	RECORDER_TIMEOUT, /* the disk does not answer */
	RECORDER_CRASHED,
	RECORDER_WHY_COUNT
};

struct recorder_save {
	uint64_t ticket;
	uint64_t last_ns; /* no more than that; 0: all */
	uint32_t rule;
	char reason[RULES_TEXT_MAX + 32]; /* "error: ..." */
};

struct recorder_state {
	uint64_t events, lost;
	uint64_t held_bytes, definition_bytes;
	uint64_t processes; /* seen so far: their number has a bound, see recorder.c */
	uint64_t cpu_ns;
	uint64_t steps_judged;
	double overhead_percent;
	double scale; /* above 1: only windows of time are recorded, to keep below max_overhead */
};

struct recorder_saved {
	uint64_t ticket;
	uint64_t events, bytes;
	uint32_t why; /* 0: it is written */
	char name[SPOOL_NAME_MAX];
};

struct recorder_message {
	uint32_t kind;
	union {
		struct recorder_settings setup;
		struct recorder_save save;
		struct recorder_state state;
		struct recorder_saved saved;
		uint32_t rule; /* RECORDER_FIRED; its sentence is in `text` */
	};
	char text[800];
};

/* 0; -EAGAIN: there is none, or no room; -EPIPE: the other side has ended. */
int recorder_send(int socket, const struct recorder_message *message);
int recorder_receive(int socket, struct recorder_message *message);

#endif
