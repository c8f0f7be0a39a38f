/* SPDX-License-Identifier: MIT */
/*
 * Options of commands, each described once, as a row: --help and manual pages, completion, the
 * search for the nearest name, the check of a value and its place in the command's struct are made
 * from it. argp (of libc) reads the command line.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct completion_value;

/* What a value is, and the type of the member that it goes to. */
enum option_kind {
	OPTION_YES,     /* bool, set; no value */
	OPTION_NO,      /* bool, cleared; no value */
	OPTION_TEXT,    /* const char *, the argument itself; with `is_no` it may not be empty, with
	                 * `words` it is one of them */
	OPTION_TEXTS,   /* const char **, grown by one each time; `with`: size_t, their number */
	OPTION_NUMBER,  /* uint64_t or size_t, from least to most */
	OPTION_TIME,    /* uint64_t of ns, likewise */
	OPTION_BYTES,   /* uint64_t, likewise */
	OPTION_WORD,    /* unsigned or an enum: the index of one of `words` */
	OPTION_SET,     /* uint32_t or unsigned: a list with commas of `words`, bit 1 << index each,
	                 * added to the bits that are there; without a value the bits `least` */
	OPTION_TAKE,    /* `take` says */
	OPTION_REFUSED, /* another command has it: `is_no` goes on, behind "there is no option
	                 * '--NAME' here" */
};

/* Another member that an option fills: 0 is none. */
#define OPTION_WITH(type, member) (offsetof(type, member) + 1)

#define OPTION_ANY (UINT64_MAX / 2) /* `most` of a value without one: what is added to it fits */

struct option_row {
	const char *name;  /* without dashes; NULL: the row is a title */
	int letter;        /* of a short option, 0: none */
	const char *value; /* what --help calls its value; NULL: it has none */
	const char *help;  /* NULL: the option is understood and not shown */
	enum option_kind kind;
	size_t at;   /* of the member, in the group's struct */
	size_t with; /* OPTION_WITH(): a bool that is set when the option is given, the number of
	              * OPTION_TEXTS */
	uint64_t least, most;
	const char *const *words; /* up to a NULL */
	/* What a wrong value is said not to be, "'x' is no SIZE"; NULL: made of the kind and its
	 * bounds. Of OPTION_WORD and OPTION_SET the noun alone: "layer". */
	const char *is_no;
	bool optional; /* its value; without one, OPTION_TEXT gets NULL, and `take` as well */
	/*
	 * Stores a value into the member (`at` 0: into the group's struct). False: it is none, as
	 * `is_no` says. What needs other words for that ends the program by itself.
	 */
	bool (*take)(const struct argp_state *state, void *to, const char *value);
	/* Completion of a value, `words` apart. `list`: of what stands behind its last comma. */
	void (*offer)(const struct completion_value *value);
	bool list;
	char *(*tell)(void); /* what stands instead of help, the caller frees it */
	const char *title;   /* of a group of rows in --help; */
	int order;           /* among those; 0: as the row before */
};

/* Rows that go together, and the groups that belong to them. */
struct option_group {
	const struct option_row *rows;
	size_t n_rows;
	const struct option_part {
		const struct option_group *group;
		size_t at; /* of its struct in this group's */
	} * parts;         /* up to one without a group; NULL: none */
	void (*begin)(void *into);
	/* When all is parsed: checks, which end the program. */
	void (*end)(const struct argp_state *state, void *into);
	/* A word that is no option; false: not one of this group's. NULL: none is. */
	bool (*word)(const struct argp_state *state, void *into, char *word);
	/* All words from the first on that `word` did not take, up to a NULL. NULL: none are. */
	void (*words)(void *into, char **words, size_t count);
};

/* The rows of an array. */
#define OPTION_ROWS(array) .rows = (array), .n_rows = sizeof(array) / sizeof(*(array))

struct option_command {
	struct option_group group;
	const char *operands; /* "[-- COMMAND [ARG...]]", a usage a line */
	const char *doc; /* the sentence at the begin of --help, '\v', what stands at its end */
};

/*
 * Parses the options of a command into `into`. Answers instead, where a shell asks what there is
 * (option.h). Ends the program on wrong usage; an option that does not exist gets the nearest
 * name. With `command`, the first word that is no option begins a command, whose own options are
 * not ours.
 */
void option_parse(const struct option_command *of, int argc, char **argv, bool command, void *into);

/* Adds a text to an array that grows; the caller frees the array. */
void option_add_text(const char ***texts, size_t *count, const char *text);

/* Ends the program: "cuscope trace: --duration: '10x' is no duration (10us, 1.5ms, 2s, 3m)". */
void option_bad_value(const struct argp_state *state, const char *option, const char *value,
                      const char *is_no) __attribute__((noreturn));

/* Ends the program: "cuscope trace: TEXT". */
void option_bad_usage(const struct argp_state *state, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* ---- scan ---------------------------------------------------------------------------------- */

/*
 * A look at a command line before argp's: of an option that does not exist argp says just that, and
 * "--durration" deserves better.
 */

#define SCAN_OPTIONS_MAX 128

/* The options that a command understands, help's among them. */
struct scan_known {
	const struct option_row *option[SCAN_OPTIONS_MAX];
	const char *name[SCAN_OPTIONS_MAX];
	size_t count;
};

void scan_known_of(const struct option_group *group, struct scan_known *known);

/* The option that a long name means: exact, or one that begins so. NULL: none. */
const struct option_row *scan_find_long(const struct scan_known *known, const char *name,
                                        size_t len);

/* Of a group of short options that of the last, if it takes its value from the next word. */
const struct option_row *scan_short_takes_next(const struct scan_known *known, const char *word);

/* The index of the first word that is no option, and no value of one; argc: there is none before
 * "--". */
int scan_first_word(const struct option_group *group, int argc, char **argv);

struct unknown_option {
	char typed[64];   /* without the dashes and the value; cut where it is longer */
	const char *near; /* the name that was meant, or NULL */
};

/*
 * Whether every long option exists, whole or as the beginning of a name; *unknown is the first that
 * does not. What else may be wrong is argp's to say. With `command`, the first word that is no
 * option begins a command, whose own options are not ours.
 *
 * "-h" becomes "--help": it is no option of any command, and what many try first.
 */
bool scan_options(const struct option_group *group, int argc, char **argv, bool command,
                  struct unknown_option *unknown);

/*
 * What a shell offers when TAB is pressed. The shells have a few lines each (src/cli/completion/),
 * which ask the program itself: `cuscope completion words WORD...`. It answers from the tables that
 * commands parse their options by, so what is offered is what is understood.
 *
 * A command's rows are met where the command hands them to option_parse(). So completion_ask() is
 * said, the command is begun, and option_parse() lets completion_answer() answer rather than
 * parsing.
 *
 * An answer is lines: "CANDIDATE<TAB>WHAT IT IS". One that begins with a colon says what the shell
 * finds better:
 *
 *     :files<TAB>.cuscope        names of files, with this ending or with any
 *     :folders                   names of folders
 *     :users                     names of users
 *     :command<TAB>INDEX         a command and its own words, from the word with this index on
 *
 * Of what other processes choose, such as their names, only that is offered which no shell can
 * obey.
 */

struct completion {
	const char *command;
	char **words; /* what stands after the command; the last one is to be completed */
	size_t count; /* 1 or more */
};

void completion_ask(const struct completion *question);

/* Prints the answer and ends the program, where something was asked; returns where nothing was. */
void completion_answer(const struct option_command *of);

/* ---- values -------------------------------------------------------------------------------- */

/* A value that is typed: `typed` begins it, and stands behind `before` in its word. */
struct completion_value {
	const char *before, *typed;
};

/* The values of an option, as its row says: by `offer`, of `words`, or files where it is a FILE. */
void completion_option_values(const struct option_row *row, const struct completion_value *value);

/* Those of what is no option, by its name in the usage: FILE, NAME. */
void completion_operands(const char *command, const char *name,
                         const struct completion_value *value);

/* Prints a candidate where it begins as what is typed. `text`: what it is, or NULL. */
void completion_offer(const struct completion_value *value, const char *word, const char *text);

/* For rows of options: what this machine has, and what cuscope knows. */
void completion_pids(const struct completion_value *value);
void completion_names(const struct completion_value *value);
void completion_users(const struct completion_value *value);
void completion_variables(const struct completion_value *value);
void completion_folders(const struct completion_value *value);
void completion_traces(const struct completion_value *value);
void completion_functions(const struct completion_value *value);
void completion_features(const struct completion_value *value);
void completion_sinks(const struct completion_value *value);
