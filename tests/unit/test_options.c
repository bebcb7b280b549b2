/* Command lines against a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options.h"

static const struct sm_option table[] = {
    {'v', "verbose", SM_ARG_NONE, NULL, NULL, ""},
    {'n', "number", SM_ARG_NUMBER, "N", NULL, ""},
    {0, "colour", SM_ARG_CHOICE, "C", "red|green", ""},
    {'q', "quiet", SM_ARG_NONE, NULL, NULL, ""},
    {0},
};
static const struct sm_command plain = {.name = "plain", .options = table};
static const struct sm_command runner = {
    .name = "runner", .options = table, .stop_at_first_argument = true};

static struct sm_invocation in;
static struct sm_error err;
static bool help;

/* Words end with NULL. */
static bool parse(const struct sm_command *command, char **words) {
    int n = 0;
    while (words[n] != NULL)
        n++;
    sm_options_release(&in);
    strcpy(err.text, "untouched");
    return sm_options_parse(&in, command, n, words, &help, &err);
}
#define PARSE(command, ...) parse(&command, (char *[]){__VA_ARGS__, NULL})

static void forms(void **state) {
    assert_true(PARSE(plain, "a", "-v", "--number", "5", "b", "--colour=green"));
    assert_string_equal(err.text, "untouched");
    assert_int_equal(in.n_arguments, 2);
    assert_string_equal(in.arguments[1], "b");
    assert_string_equal(sm_option_value(&in, "number"), "5");
    assert_string_equal(sm_option_value(&in, "colour"), "green");
    assert_true(sm_option_given(&in, "verbose"));
    assert_false(sm_option_given(&in, "quiet"));
    assert_true(PARSE(plain, "-vqn7") && sm_option_given(&in, "quiet"));
    assert_string_equal(sm_option_value(&in, "number"), "7");
    assert_true(PARSE(plain, "-n", "1", "-n", "2"));
    assert_string_equal(sm_option_value(&in, "number"), "2"); /* the last counts */
    assert_true(PARSE(plain, "--number=", "-", "--", "-v"));
    assert_string_equal(sm_option_value(&in, "number"), "");
    assert_int_equal(in.n_arguments, 2);
    assert_string_equal(in.arguments[0], "-");
    assert_string_equal(in.arguments[1], "-v");
    assert_true(PARSE(plain, "--number", "--verbose")); /* a value is taken as it stands */
    assert_false(sm_option_given(&in, "verbose"));
}

static void program(void **state) {
    assert_true(PARSE(runner, "-v", "prog", "-q", "--number", "--help"));
    assert_true(sm_option_given(&in, "verbose") && !sm_option_given(&in, "quiet") && !help);
    assert_int_equal(in.n_arguments, 4);
    assert_string_equal(in.arguments[3], "--help");
    assert_true(PARSE(runner, "-q", "--", "-strange", "-v"));
    assert_int_equal(in.n_arguments, 2);
    assert_string_equal(in.arguments[0], "-strange");
}

static void wants_help(void **state) {
    assert_true(PARSE(plain, "--help") && help);
    assert_true(PARSE(plain, "-vh") && help);
    assert_true(PARSE(plain, "x") && !help);
}

static void wrong(void **state) {
    assert_false(PARSE(plain, "--verbos"));
    assert_non_null(strstr(err.text, "did you mean --verbose"));
    assert_false(PARSE(plain, "--xyzzy"));
    assert_null(strstr(err.text, "did you mean"));
    assert_false(PARSE(plain, "-x"));
    assert_false(PARSE(plain, "--number"));
    assert_false(PARSE(plain, "-n"));
    assert_false(PARSE(plain, "--verbose=1"));
    assert_false(PARSE(plain, "--colour=re"));
    assert_false(PARSE(plain, "--colour=red|green"));
    assert_false(PARSE(plain, "--colour="));
}

static void nearest(void **state) {
    const char *names[] = {"record", "info", "top", "dump"};
    assert_string_equal(sm_nearest_name("recrod", names, 4), "record");
    assert_string_equal(sm_nearest_name("inof", names, 4), "info");
    assert_string_equal(sm_nearest_name("re", names, 4), "record");
    assert_null(sm_nearest_name("convert", names, 4));
    assert_null(sm_nearest_name("", names, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms), cmocka_unit_test(program), cmocka_unit_test(wants_help),
        cmocka_unit_test(wrong), cmocka_unit_test(nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
