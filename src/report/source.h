/* `source`: a file's lines with what they allocate. Hosted. */
#ifndef SM_REPORT_SOURCE_H
#define SM_REPORT_SOURCE_H

#include "report/asked.h"

struct sm_source_line {
    uint32_t line;
    struct sm_sum own, total;
    uint32_t key; /* of the view, for the function's name */
};
struct sm_source {
    const struct sm_asked *asked;
    struct sm_view view;
    struct sm_weigher weigher;
    const char *file;             /* as the trace names it */
    struct sm_source_line *lines; /* ascending */
    uint32_t n_lines;
    struct sm_sum total; /* of all that was asked for */
    const char *text;    /* of the file; NULL = not at hand */
    uint64_t context;    /* lines shown around those that allocate; 0 = the whole file */
};

/* file: as in the trace, or the end of such a name after a slash. False with err when the trace has none, or
   several, by that name. */
bool sm_source_make(struct sm_source *s, const struct sm_asked *asked, const char *file,
                    const struct sm_weight *weight, struct sm_error *err);
void sm_source_release(struct sm_source *s);
void sm_source_print(struct sm_buffer *out, const struct sm_source *s);
void sm_source_json(struct sm_buffer *out, const struct sm_source *s);
void sm_source_csv(struct sm_buffer *out, const struct sm_source *s);

#endif
