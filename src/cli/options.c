/* See options.h. The parser is ours rather than getopt_long, since one table also makes help, man
   pages and completion, and since its messages can then name what was probably meant. */
#include "cli/options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

size_t sm_options_count(const struct sm_option *options) {
    size_t n = 0;
    while (options != NULL && options[n].long_name != NULL)
        n++;
    return n;
}

/* Edit distance (insert, delete, replace, swap of neighbours), words cut at 31 bytes. */
static unsigned distance(const char *a, const char *b) {
    size_t la = strnlen(a, 31), lb = strnlen(b, 31);
    unsigned d[32][32];
    for (size_t i = 0; i <= la; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= lb; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        for (size_t j = 1; j <= lb; j++) {
            unsigned best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[la][lb];
}

const char *sm_nearest_name(const char *word, const char *const *names, size_t n_names) {
    const char *nearest = NULL;
    unsigned best = 1 + (unsigned)strnlen(word, 31) / 3;
    for (size_t i = 0; i < n_names; i++) {
        size_t length = strlen(word);
        if (names[i] == NULL)
            continue;
        if (length >= 2 && strncmp(names[i], word, length) == 0)
            return names[i];
        unsigned d = distance(word, names[i]);
        if (d <= best && (nearest == NULL || d < best)) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}

static bool choice_allowed(const char *choices, const char *value) {
    size_t length = strlen(value);
    if (strchr(value, '|') != NULL)
        return false;
    for (const char *c = choices; c != NULL; c = strchr(c, '|')) {
        if (*c == '|')
            c++;
        if (strncmp(c, value, length) == 0 && (c[length] == '|' || c[length] == 0))
            return true;
    }
    return false;
}

static void unknown_long(const struct sm_command *command, const char *name, struct sm_error *err) {
    size_t n = sm_options_count(command->options);
    const char **names = sm_alloc_zero(n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = command->options[i].long_name;
    names[n] = "help";
    const char *nearest = sm_nearest_name(name, names, n + 1);
    if (nearest != NULL)
        sm_error_set(err, "unknown option --%.60s; did you mean --%s?", name, nearest);
    else
        sm_error_set(err, "unknown option --%.60s", name);
    free(names);
}

static bool set_value(struct sm_invocation *in, size_t i, const char *value, struct sm_error *err) {
    const struct sm_option *o = &in->command->options[i];
    if (o->kind == SM_ARG_CHOICE && !choice_allowed(o->choices, value)) {
        sm_error_set(err, "--%s must be one of %s, not '%.60s'", o->long_name, o->choices, value);
        return false;
    }
    in->values[i] = value;
    in->given = sm_grow(in->given, &in->given_capacity, in->n_given + 1, sizeof *in->given);
    in->given[in->n_given++] = (struct sm_given){i, value};
    return true;
}

/* One "--..." word; *used is how many words of argv it took. */
static bool parse_long(struct sm_invocation *in, int argc, char **argv, int *used, bool *wants_help,
                       struct sm_error *err) {
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const struct sm_option *options = in->command->options;
    *used = 1;
    if (length == 4 && strncmp(name, "help", 4) == 0) {
        *wants_help = true;
        return true;
    }
    for (size_t i = 0; options[i].long_name != NULL; i++) {
        if (strlen(options[i].long_name) != length ||
            strncmp(options[i].long_name, name, length) != 0)
            continue;
        if (options[i].kind == SM_ARG_NONE) {
            if (equals != NULL) {
                sm_error_set(err, "--%s takes no value", options[i].long_name);
                return false;
            }
            in->values[i] = "";
            return true;
        }
        if (equals != NULL)
            return set_value(in, i, equals + 1, err);
        if (argc < 2) {
            sm_error_set(err, "--%s needs a value (%s)", options[i].long_name, options[i].argument);
            return false;
        }
        *used = 2;
        return set_value(in, i, argv[1], err);
    }
    char word[64];
    size_t copied = length < sizeof word - 1 ? length : sizeof word - 1;
    memcpy(word, name, copied);
    word[copied] = 0;
    unknown_long(in->command, word, err);
    return false;
}

/* One "-abc" word. */
static bool parse_short(struct sm_invocation *in, int argc, char **argv, int *used,
                        bool *wants_help, struct sm_error *err) {
    const struct sm_option *options = in->command->options;
    *used = 1;
    for (const char *c = argv[0] + 1; *c != 0; c++) {
        size_t i = 0;
        while (options[i].long_name != NULL && options[i].short_name != *c)
            i++;
        if (options[i].long_name == NULL) {
            if (*c == 'h') {
                *wants_help = true;
                continue;
            }
            sm_error_set(err, "unknown option -%c", *c >= ' ' && *c < 127 ? *c : '?');
            return false;
        }
        if (options[i].kind == SM_ARG_NONE) {
            in->values[i] = "";
            continue;
        }
        if (c[1] != 0)
            return set_value(in, i, c + 1, err);
        if (argc < 2) {
            sm_error_set(err, "-%c needs a value (%s)", *c, options[i].argument);
            return false;
        }
        *used = 2;
        return set_value(in, i, argv[1], err);
    }
    return true;
}

bool sm_options_parse(struct sm_invocation *in, const struct sm_command *command, int argc,
                      char **argv, bool *wants_help, struct sm_error *err) {
    *in = (struct sm_invocation){.command = command};
    in->values = sm_alloc_zero(sm_options_count(command->options) + 1, sizeof *in->values);
    in->arguments = sm_alloc_zero((size_t)argc + 1, sizeof *in->arguments);
    *wants_help = false;
    for (int i = 0; i < argc;) {
        char *word = argv[i];
        int used = 1;
        bool ok = true;
        if (strcmp(word, "--") == 0 || (word[0] != '-' && command->stop_at_first_argument)) {
            for (i += word[0] == '-'; i < argc; i++)
                in->arguments[in->n_arguments++] = argv[i];
            break;
        }
        if (word[0] != '-' || word[1] == 0)
            in->arguments[in->n_arguments++] = word;
        else if (word[1] == '-')
            ok = parse_long(in, argc - i, argv + i, &used, wants_help, err);
        else
            ok = parse_short(in, argc - i, argv + i, &used, wants_help, err);
        if (!ok)
            return false;
        i += used;
    }
    return true;
}

void sm_options_release(struct sm_invocation *in) {
    free(in->values);
    free(in->given);
    free(in->arguments);
    *in = (struct sm_invocation){.command = in->command};
}

static size_t option_index(const struct sm_invocation *in, const char *long_name) {
    const struct sm_option *options = in->command->options;
    for (size_t i = 0; options[i].long_name != NULL; i++) {
        if (strcmp(options[i].long_name, long_name) == 0)
            return i;
    }
    assert(!"option is not in the command's table");
    return 0;
}

const char *sm_option_value(const struct sm_invocation *in, const char *long_name) {
    return in->values[option_index(in, long_name)];
}

const char *sm_option_nth(const struct sm_invocation *in, const char *long_name, size_t n) {
    size_t option = option_index(in, long_name);
    for (size_t i = 0; i < in->n_given; i++) {
        if (in->given[i].option == option && n-- == 0)
            return in->given[i].value;
    }
    return NULL;
}

bool sm_option_given(const struct sm_invocation *in, const char *long_name) {
    return sm_option_value(in, long_name) != NULL;
}
