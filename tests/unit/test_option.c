// SPDX-License-Identifier: MIT
/* Rows of options: where values go, and what is said of those that are none. */
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cli/option.h"

struct part {
	uint64_t number;
	bool given;
};

struct command {
	bool chosen_given, yes, no, ended;
	const char *text, *color, *full;
	const char **texts;
	size_t n_texts;
	uint64_t number, time_ns, bytes;
	enum { LAYER_A, LAYER_B } layer;
	uint32_t set;
	int own;
	struct part part;
	char **words;
	size_t n_words;
	const char *first;
};

#define AT(member) offsetof(struct command, member)

static const char *const layers[] = { "alpha", "beta", NULL };
static const char *const colors[] = { "red", "green", "blue", NULL };

static bool take_own(const struct argp_state *state, void *to, const char *value)
{
	*(int *)to = value ? (int)strlen(value) : -1;
	return !value || strcmp(value, "wrong");
}

static void begin(void *into)
{
	((struct command *)into)->no = true;
}

static void end(const struct argp_state *state, void *into)
{
	((struct command *)into)->ended = true;
}

static bool word(const struct argp_state *state, void *into, char *word)
{
	struct command *c = into;

	if (c->first)
		return false;
	c->first = word;
	return true;
}

static void words(void *into, char **words, size_t count)
{
	((struct command *)into)->words = words;
	((struct command *)into)->n_words = count;
}

static char *tell(void)
{
	return strdup("told as it is made");
}

static const struct option_row part_rows[] = {
	{ "part", 0, "N", "of a part", OPTION_NUMBER, offsetof(struct part, number),
	  OPTION_WITH(struct part, given), .most = 9, .order = 2 },
};
static const struct option_group part = { OPTION_ROWS(part_rows) };
static const struct option_part parts[] = { { &part, AT(part) }, { 0 } };

static const struct option_row rows[] = {
	{ .title = "All kinds:", .order = 1 },
	{ "yes", 'y', NULL, "set", OPTION_YES, AT(yes) },
	{ "no", 0, NULL, "cleared", OPTION_NO, AT(no) },
	{ "text", 't', "TEXT", "any", OPTION_TEXT, AT(text) },
	{ "full", 0, "TEXT", "not empty", OPTION_TEXT, AT(full), .is_no = "name" },
	{ "color", 0, "WHEN", "one of three", OPTION_TEXT, AT(color), .words = colors },
	{ "texts", 0, "TEXT", "many", OPTION_TEXTS, AT(texts),
	  OPTION_WITH(struct command, n_texts) },
	{ "number", 0, "N", "bounded", OPTION_NUMBER, AT(number), .least = 2, .most = 20 },
	{ "any", 0, "N", "without a bound", OPTION_NUMBER, AT(number), .least = 1,
	  .most = OPTION_ANY },
	{ "few", 0, "N", "from 0", OPTION_NUMBER, AT(number), .most = 5 },
	{ "time", 0, "TIME", "any", OPTION_TIME, AT(time_ns), .least = 1, .most = OPTION_ANY },
	{ "interval", 0, "TIME", "bounded", OPTION_TIME, AT(time_ns), .least = 100000000,
	  .most = 3600000000000 },
	{ "bytes", 0, "SIZE", "bounded", OPTION_BYTES, AT(bytes), .least = 1024, .most = 1 << 20,
	  .is_no = "size from 1KiB to 1MiB" },
	{ "layer", 0, "LAYER", "by index", OPTION_WORD, AT(layer), .words = layers,
	  .is_no = "layer" },
	{ "set", 0, "LIST", "bits", OPTION_SET, AT(set), OPTION_WITH(struct command, chosen_given),
	  .least = 6, .words = colors, .is_no = "colour", .optional = true },
	{ "own", 0, "X", "by a function", OPTION_TAKE, AT(own), .take = take_own, .is_no = "own",
	  .optional = true },
	{ "told", 0, "X", .kind = OPTION_TEXT, .at = AT(text), .tell = tell },
	{ "hidden", 0, NULL, NULL, OPTION_YES, AT(yes) },
};

static const struct option_command command = {
	.group = { OPTION_ROWS(rows), .parts = parts, .begin = begin, .end = end, .word = word,
	           .words = words },
	.operands = "[FILE] [ARG...]",
	.doc = "A command.\vIts end.",
};

static struct command parsed;
static char *argv[32];
static char *line_of_words;

/* `line` is split at its blanks. */
static void parse(const char *line, bool with_command)
{
	int argc = 1;
	char *rest;

	free(line_of_words);
	line_of_words = rest = strdup(line);
	argv[0] = (char *)"cuscope x";
	while ((argv[argc] = strsep(&rest, " ")))
		argc++;
	free(parsed.texts);
	memset(&parsed, 0, sizeof(parsed));
	option_parse(&command, argc, argv, with_command, &parsed);
}

/* What a child that parses the line prints, on both streams; its status goes to *status. */
static const char *said(const char *line, int *status)
{
	static char text[8192];
	size_t len = 0;
	ssize_t got;
	int out[2];
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		close(out[0]);
		close(out[1]);
		parse(line, false);
		_exit(99);
	}
	close(out[1]);
	while ((got = read(out[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)got;
	text[len] = '\0';
	close(out[0]);
	waitpid(pid, status, 0);
	*status = WEXITSTATUS(*status);
	return text;
}

static void assert_refused(const char *line, const char *sentence)
{
	int status;
	const char *text = said(line, &status);

	assert_string_equal(text, sentence);
	assert_int_equal(status, 2);
}

static void test_values_go_to_their_members(void **state)
{
	parse("", false);
	assert_true(parsed.no);
	assert_true(parsed.ended);
	assert_false(parsed.part.given);
	parse("-y --no -t a --full=b --color blue --texts=c --texts d --number 20 --time 3ms "
	      "--bytes 4k",
	      false);
	assert_true(parsed.yes);
	assert_false(parsed.no);
	assert_string_equal(parsed.text, "a");
	assert_string_equal(parsed.full, "b");
	assert_string_equal(parsed.color, "blue");
	assert_int_equal(parsed.n_texts, 2);
	assert_string_equal(parsed.texts[0], "c");
	assert_string_equal(parsed.texts[1], "d");
	assert_int_equal(parsed.number, 20);
	assert_int_equal(parsed.time_ns, 3000000);
	assert_int_equal(parsed.bytes, 4096);
	parse("--layer beta --own --part 7 --hidden --few 0 --interval 1h", false);
	assert_int_equal(parsed.layer, LAYER_B);
	assert_int_equal(parsed.own, -1);
	assert_int_equal(parsed.part.number, 7);
	assert_true(parsed.part.given);
	assert_true(parsed.yes);
	assert_int_equal(parsed.time_ns, 3600000000000);
	parse("--own=four --text=", false);
	assert_int_equal(parsed.own, 4);
	assert_string_equal(parsed.text, "");
}

static void test_a_set_is_added_to(void **state)
{
	parse("--set", false);
	assert_int_equal(parsed.set, 6);
	assert_true(parsed.chosen_given);
	parse("--set=red,blue", false);
	assert_int_equal(parsed.set, 5);
	parse("--set=red --set=green", false);
	assert_int_equal(parsed.set, 3);
	assert_refused("--set blue", "cuscope x: --set: its list follows '=': --set=blue\n");
	assert_refused("--set red,x", "cuscope x: --set: its list follows '=': --set=red,x\n");
	assert_refused("--set=blu",
	               "cuscope x: --set: there is no colour 'blu'; did you mean 'blue'?\n");
	assert_refused("--set=red,xyzzy",
	               "cuscope x: --set: there is no colour 'xyzzy' (red, green or blue)\n");
	assert_refused("--set=", "cuscope x: --set: there is no colour '' (red, green or blue)\n");
	parse("--set blueish", false); /* a word that only begins so */
	assert_string_equal(parsed.first, "blueish");
}

static void test_what_is_no_value_is_told_with_its_bounds(void **state)
{
	assert_refused("--number 1", "cuscope x: --number: '1' is no number from 2 to 20\n");
	assert_refused("--number 21", "cuscope x: --number: '21' is no number from 2 to 20\n");
	assert_refused("--number x", "cuscope x: --number: 'x' is no number from 2 to 20\n");
	assert_refused("--any 0", "cuscope x: --any: '0' is no number from 1 on\n");
	assert_refused("--few 6", "cuscope x: --few: '6' is no number up to 5\n");
	assert_refused("--part 10", "cuscope x: --part: '10' is no number up to 9\n");
	assert_refused("--time 0s",
	               "cuscope x: --time: '0s' is no duration (10us, 1.5ms, 2s, 3m)\n");
	assert_refused("--interval 99ms",
	               "cuscope x: --interval: '99ms' is no time from 100ms to 1h\n");
	assert_refused("--bytes 1023", "cuscope x: --bytes: '1023' is no size from 1KiB to 1MiB\n");
	assert_refused("--layer gamma",
	               "cuscope x: --layer: 'gamma' is no layer (alpha or beta)\n");
	assert_refused("--color pink",
	               "cuscope x: --color: 'pink' is no choice (red, green or blue)\n");
	assert_refused("--full=", "cuscope x: --full: '' is no name\n");
	assert_refused("--own=wrong", "cuscope x: --own: 'wrong' is no own\n");
	assert_refused("--numbre 3",
	               "cuscope x: there is no option '--numbre'; did you mean '--number'?\n");
	assert_refused("--xyzzy 3",
	               "cuscope x: there is no option '--xyzzy'; see 'cuscope x --help'\n");
}

static void test_words_are_the_commands(void **state)
{
	parse("-y one two", false);
	assert_string_equal(parsed.first, "one");
	assert_int_equal(parsed.n_words, 1);
	assert_string_equal(parsed.words[0], "two");
	parse("-y one two --no", true); /* what stands behind the first belongs to a command */
	assert_int_equal(parsed.n_words, 2);
	assert_string_equal(parsed.words[1], "--no");
	assert_true(parsed.no);
}

static void test_help_shows_what_is_not_hidden(void **state)
{
	int status;
	const char *help = said("--help", &status);

	assert_int_equal(status, 0);
	assert_non_null(strstr(help, "Usage: cuscope x [OPTION...] [FILE] [ARG...]\n"));
	assert_non_null(strstr(help, " All kinds:\n"));
	assert_non_null(strstr(help, "--set[=LIST]"));
	assert_non_null(strstr(help, "-t, --text=TEXT"));
	assert_non_null(strstr(help, "--part=N"));
	assert_non_null(strstr(help, "told as it is made\n"));
	assert_non_null(strstr(help, "Its end."));
	assert_null(strstr(help, "hidden"));
}

static void assert_offered(const char *line, const char *wanted)
{
	char *copy = strdup(line), *rest = copy, *asked[8];
	struct completion question = { .command = "x", .words = asked };
	int status, out[2];
	char text[1024];
	ssize_t got;
	pid_t pid;

	while (rest)
		asked[question.count++] = strsep(&rest, " ");
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		completion_ask(&question);
		option_parse(&command, 1, argv, false, &parsed);
		_exit(99);
	}
	close(out[1]);
	got = read(out[0], text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	close(out[0]);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_string_equal(text, wanted);
	free(copy);
}

static void test_values_are_offered(void **state)
{
	assert_offered("--layer ", "alpha\nbeta\n");
	assert_offered("--layer=b", "--layer=beta\n");
	assert_offered("--set=red,b", "--set=red,blue\n");
	assert_offered("--num", "--number=\tbounded\n");
	assert_offered("--se", "--set\tbits\n--set=\tbits\n");
	assert_offered("--hid", "");
	assert_offered("--text ", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_go_to_their_members),
		cmocka_unit_test(test_a_set_is_added_to),
		cmocka_unit_test(test_what_is_no_value_is_told_with_its_bounds),
		cmocka_unit_test(test_words_are_the_commands),
		cmocka_unit_test(test_help_shows_what_is_not_hidden),
		cmocka_unit_test(test_values_are_offered),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(parsed.texts);
	free(line_of_words);
	return failed;
}
