// SPDX-License-Identifier: MIT
#include "identity/process_command.h"

#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "identity/process_environ.h"

#define OPTIONS_MAX 16 /* before the script that are passed over */

struct process_words {
	const char *at;
	size_t left;
};

/* The next word and its length, or NULL. */
static const char *next_word(struct process_words *words, size_t *len)
{
	const char *word = words->at;

	if (!words->left)
		return NULL;
	*len = strnlen(word, words->left);
	words->at += *len + (*len < words->left);
	words->left -= *len + (*len < words->left);
	return word;
}

static const char *last_part(const char *word, size_t *len)
{
	const char *slash = memrchr(word, '/', *len);

	if (!slash || slash + 1 == word + *len)
		return word;
	*len -= (size_t)(slash + 1 - word);
	return slash + 1;
}

static bool is_interpreter(const char *program, size_t len)
{
	static const char *const known[] = { "python", "julia", "perl", "ruby", "bash", "sh" };
	char name[32];

	if (len >= sizeof(name))
		return false;
	memcpy(name, program, len);
	name[len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i]);

		if (!strncmp(name, known[i], n) && !name[n + strspn(name + n, "0123456789.")])
			return true;
	}
	return false;
}

static bool is_word(const char *word, size_t len, const char *text)
{
	return len == strlen(text) && !memcmp(word, text, len);
}

/* The script, or the module of "-m"; NULL: there is none, or it is told by "-c". */
static const char *find_script(struct process_words *words, size_t *len)
{
	const char *word;

	for (int i = 0; i < OPTIONS_MAX && (word = next_word(words, len)); i++) {
		if (is_word(word, *len, "-m"))
			return next_word(words, len);
		if (is_word(word, *len, "-c"))
			return NULL;
		if (is_word(word, *len, "-W") || is_word(word, *len, "-X"))
			next_word(words, len); /* what these want */
		else if (*len && word[0] != '-')
			return last_part(word, len);
	}
	return NULL;
}

void process_command_parse(const char *bytes, size_t n, char *command, size_t room)
{
	struct process_words words = { bytes, n };
	size_t len = 0, used;
	const char *word = next_word(&words, &len);
	bool interpreter;

	command[0] = '\0';
	if (!word)
		return;
	word = last_part(word, &len);
	interpreter = is_interpreter(word, len);
	process_text(command, room, word, len);
	word = interpreter ? find_script(&words, &len) : NULL;
	used = strlen(command);
	if (!word || used + 2 >= room)
		return;
	command[used++] = ' ';
	process_text(command + used, room - used, word, len);
}
