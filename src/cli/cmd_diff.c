/* statmem diff: two traces side by side. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/diff.h"
#include "util/number.h"

static const struct sm_option options[] = {
    SM_WEIGHT_OPTION("allocated"),
    {0, "normalise", SM_ARG_CHOICE, "HOW", "none|total|time",
     "Scale B so that totals (shares are compared) or durations (rates) agree (none)"},
    {0, "work", SM_ARG_TEXT, "A:B", NULL,
     "What the two did, in any unit, such as requests: B is scaled by A/B"},
    {'i', "inclusive", SM_ARG_NONE, NULL, NULL,
     "Compare what functions allocated with their callees"},
    {0, "fail-above", SM_ARG_TEXT, "SIZE", NULL,
     "Exit with 1 when the total grew significantly, by more than SIZE or, with a % sign, by more "
     "than that share"},
    SM_KEY_OPTION,
    SM_TOP_OPTION,
    SM_FOLD_OPTION,
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

/* "1000:1200" */
static bool work(const struct sm_invocation *in, double *factor) {
    const char *text = sm_option_value(in, "work");
    char *end;
    *factor = 1;
    if (text == NULL)
        return true;
    double a = strtod(text, &end), b = 0;
    if (end != text && *end == ':')
        b = strtod(end + 1, &end);
    if (*end != 0 || !(a > 0 && b > 0)) {
        sm_usage_error(in, "--work wants two numbers such as 1000:1200, not '%.60s'", text);
        return false;
    }
    *factor = a / b;
    return true;
}

struct limit {
    bool given, share;
    double value;
};

static bool parse_limit(const struct sm_invocation *in, struct limit *l) {
    const char *text = sm_option_value(in, "fail-above");
    uint64_t bytes;
    char *end;
    *l = (struct limit){.given = text != NULL};
    if (text == NULL)
        return true;
    size_t n = strlen(text);
    if (n > 1 && text[n - 1] == '%') {
        l->share = true;
        l->value = strtod(text, &end) / 100;
        if (end == text + n - 1 && l->value >= 0)
            return true;
    } else if (sm_parse_bytes(text, 0, &bytes)) {
        l->value = (double)bytes;
        return true;
    }
    sm_usage_error(in, "--fail-above wants a size such as 10MB or a share such as 5%%, not '%.60s'",
                   text);
    return false;
}

static int judge(const struct sm_diff *d, const struct limit *l, int code) {
    struct sm_estimate a = sm_weight_estimate(&d->weighers[0], &d->totals[0]);
    double allowed = l->share ? a.value * l->value : l->value;
    char grown[SM_NUMBER_BYTES], most[SM_NUMBER_BYTES];
    if (!l->given || !d->significant || !(d->delta > allowed))
        return code;
    return sm_trouble("the total grew by %s; --fail-above allows %s",
                      sm_number_bytes(grown, d->delta, false),
                      sm_number_bytes(most, allowed, false));
}

static int report(const struct sm_invocation *in, const struct sm_analysis_input *a,
                  const struct sm_analysis_input *b) {
    struct sm_weight weights[2];
    struct limit limit;
    uint32_t n;
    double factor;
    const char *normalise = sm_option_value(in, "normalise");
    enum sm_normalise how = normalise == NULL || strcmp(normalise, "none") == 0 ? SM_NORMALISE_NONE
                            : strcmp(normalise, "total") == 0                   ? SM_NORMALISE_TOTAL
                                                                                : SM_NORMALISE_TIME;
    if (!work(in, &factor) || !parse_limit(in, &limit) ||
        !sm_analysis_weights(in, a, "allocated", &weights[0], 1, &n) ||
        !sm_analysis_weights(in, b, "allocated", &weights[1], 1, &n))
        return SM_EXIT_USAGE;
    struct sm_diff d;
    struct sm_buffer out;
    sm_diff_make(&d, &a->asked, &b->asked, sm_analysis_key(in), &weights[0], &weights[1], how,
                 factor, sm_option_given(in, "inclusive"));
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_diff_json(&out, &d);
    else if (sm_option_given(in, "csv"))
        sm_diff_csv(&out, &d);
    else
        sm_diff_print(&out, &d);
    int code = judge(&d, &limit, sm_output_end(&out));
    sm_diff_release(&d);
    return code;
}

static int run(const struct sm_invocation *in) {
    struct sm_analysis_input a, b;
    if (in->n_arguments != 2)
        return sm_usage_error(in, "name two traces, before and after");
    int code = sm_analysis_input_open_path(in, in->arguments[0], &a);
    if (code != SM_EXIT_OK)
        return code;
    code = sm_analysis_input_open_path(in, in->arguments[1], &b);
    if (code == SM_EXIT_OK) {
        code = report(in, &a, &b);
        code = sm_analysis_input_close(in, &b, false, code);
    }
    return sm_analysis_input_close(in, &a, false, code);
}

const struct sm_command sm_cmd_diff = {
    .name = "diff",
    .summary = "compare two traces",
    .usage = "[OPTION]... BEFORE AFTER",
    .description =
        "What grew and what shrank from BEFORE (A) to AFTER (B), by function, line, file or "
        "module, largest changes "
        "first. Places are the same when function and file (and line) are, so two builds of a "
        "program can be compared. "
        "A change is significant when the two 95 % intervals are apart; others may be chance.",
    .examples =
        "statmem diff old.stm new.stm\n"
        "    what the new version allocates more and less\n"
        "statmem diff --weight live@peak --fail-above 5% old.stm new.stm\n"
        "    for continuous integration: exit status 1 when the peak grew by more than 5 %\n"
        "statmem diff --work 1000:1250 old.stm new.stm\n"
        "    per request: 1000 before, 1250 after\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
