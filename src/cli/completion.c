// SPDX-License-Identifier: MIT
/* What the completions of the shells ask for: a question about the words of a command, answered
 * from its options. */
#include "cli/option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

#define TEXT_MOST 100 /* bytes of what stands beside a candidate */

static const struct completion *asked; /* NULL: this run parses */

void completion_ask(const struct completion *question)
{
	asked = question;
}

/* ---- what is offered ----------------------------------------------------------------------- */

void completion_offer(const struct completion_value *value, const char *word, const char *text)
{
	AT_END(buf_free) struct buf line = { 0 };

	if (strncmp(word, value->typed, strlen(value->typed)))
		return;
	buf_puts(&line, value->before);
	buf_puts(&line, word);
	if (text && *text) {
		buf_puts(&line, "\t");
		text_add_safe(&line, text);
	}
	puts(line.data);
}

/* The first part of what --help says of it. */
static void offer_option(const struct completion_value *value, const struct option_row *option)
{
	struct buf word = { 0 };
	char text[TEXT_MOST];

	snprintf(text, sizeof(text), "%s", option->help ? option->help : "");
	text[strcspn(text, ";")] = '\0';
	buf_printf(&word, "--%s%s", option->name, option->value && !option->optional ? "=" : "");
	completion_offer(value, word.data, text);
	buf_free(&word);
	if (option->optional) {
		buf_printf(&word, "--%s=", option->name);
		completion_offer(value, word.data, text);
		buf_free(&word);
	}
}

static void offer_options(const struct scan_known *known, const char *typed)
{
	const struct completion_value value = { .before = "", .typed = typed };

	for (size_t i = 0; i < known->count; i++) {
		if (known->option[i]->help || known->option[i]->tell)
			offer_option(&value, known->option[i]);
	}
}

/* ---- where the cursor is ------------------------------------------------------------------- */

/* Names of the operands in a usage, "[-- COMMAND [ARG...]]\nFILE", without the options in it. */
struct operands {
	char text[128];
	const char *name[8];
	size_t count;
	bool starts; /* a command, whose own options are not ours, */
	size_t at;   /* which is this operand, without a "--" before it */
};

static void read_operands(const char *usage, struct operands *operands)
{
	bool option = false;

	memset(operands, 0, sizeof(*operands));
	snprintf(operands->text, sizeof(operands->text), "%s", usage ? usage : "");
	for (char *word = strtok(operands->text, " []\n"); word && operands->count < 8;
	     word = strtok(NULL, " []\n")) {
		if (*word == '-') {
			option = strcmp(word, "--") != 0; /* "-o OUT": the next is its value */
			continue;
		}
		if (!strcmp(word, "COMMAND")) {
			operands->starts = true;
			operands->at = operands->count;
		}
		if (!option && strcmp(word, "ARG...") && strcmp(word, "COMMAND"))
			operands->name[operands->count++] = word;
		option = false;
	}
}

struct cursor {
	const struct option_row *option; /* whose value the word is, NULL: no option's */
	size_t operands;                 /* that stand before it */
	bool only_operands;              /* behind "--" */
	bool in_command;                 /* it belongs to another command, */
	size_t command;                  /* which begins at this word */
};

/* The option that takes its value from the next word; NULL where none does. */
static const struct option_row *awaits_value(const struct scan_known *known, const char *word)
{
	const struct option_row *option;

	if (word[1] != '-')
		return scan_short_takes_next(known, word);
	if (strchr(word, '='))
		return NULL;
	option = scan_find_long(known, word + 2, strlen(word + 2));
	return option && option->value && !option->optional ? option : NULL;
}

/* Operands without an end: then a command begins after "--" alone. */
static bool are_many(const struct operands *operands)
{
	return operands->count && strstr(operands->name[operands->count - 1], "...");
}

/* "--", or the first word that is neither an option nor the file that may stand in its place. */
static bool begins_command(const struct operands *operands, const struct cursor *cursor,
                           const char *word)
{
	const char *ending = strrchr(word, '.');
	bool file = operands->count > operands->at && ending && !strcmp(ending, ".cuscope");

	if (!strcmp(word, "--"))
		return true;
	return word[0] != '-' && cursor->operands == operands->at && !file && !are_many(operands);
}

/* Goes over the words before the last. */
static struct cursor find_cursor(const struct scan_known *known, const struct operands *operands)
{
	struct cursor cursor = { 0 };

	for (size_t i = 0; i + 1 < asked->count; i++) {
		const char *word = asked->words[i];

		if (cursor.option) {
			cursor.option = NULL;
		} else if (operands->starts && begins_command(operands, &cursor, word)) {
			cursor.in_command = true;
			cursor.command = i + !strcmp(word, "--");
			return cursor;
		} else if (!cursor.only_operands && !strcmp(word, "--")) {
			cursor.only_operands = true;
		} else if (!cursor.only_operands && word[0] == '-' && word[1]) {
			cursor.option = awaits_value(known, word);
		} else {
			cursor.operands++;
		}
	}
	return cursor;
}

static void offer_operand(const struct operands *operands, size_t index, const char *typed)
{
	const struct completion_value value = { .before = "", .typed = typed };

	if (index < operands->count)
		completion_operands(asked->command, operands->name[index], &value);
	else if (are_many(operands))
		completion_operands(asked->command, operands->name[operands->count - 1], &value);
	else if (operands->starts)
		printf(":command\t%zu\n", asked->count - 1);
}

/* "--format=ta" */
static bool offer_joined_value(const struct scan_known *known, char *word)
{
	char *equals = strchr(word, '=');
	const struct option_row *option;
	AT_END(buf_free) struct buf before = { 0 };

	if (strncmp(word, "--", 2) || !equals)
		return false;
	option = scan_find_long(known, word + 2, (size_t)(equals - word - 2));
	buf_add(&before, word, (size_t)(equals + 1 - word));
	if (option && option->value)
		completion_option_values(option, &(struct completion_value){ .before = before.data,
		                                                             .typed = equals + 1 });
	return true;
}

void completion_answer(const struct option_command *of)
{
	struct scan_known known = { .count = 0 };
	struct operands operands;
	struct cursor cursor;
	char *typed;

	if (!asked)
		return;
	scan_known_of(&of->group, &known);
	read_operands(of->operands, &operands);
	cursor = find_cursor(&known, &operands);
	typed = asked->words[asked->count - 1];
	if (cursor.in_command)
		printf(":command\t%zu\n", cursor.command);
	else if (cursor.option)
		completion_option_values(
			cursor.option, &(struct completion_value){ .before = "", .typed = typed });
	else if (cursor.only_operands || *typed != '-')
		offer_operand(&operands, cursor.operands, typed);
	else if (!offer_joined_value(&known, typed))
		offer_options(&known, typed);
	exit(fflush(stdout) ? EXIT_FAILURE : 0);
}
