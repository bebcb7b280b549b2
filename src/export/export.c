/* See export.h: the formats by name. */
#include "export/export.h"

#include <string.h>

#include "export/model.h"

static const char *const names[] = {
    [SM_EXPORT_PPROF] = "pprof",
    [SM_EXPORT_COLLAPSED] = "collapsed",
    [SM_EXPORT_SPEEDSCOPE] = "speedscope",
    [SM_EXPORT_DHAT] = "dhat",
    [SM_EXPORT_MASSIF] = "massif",
    [SM_EXPORT_CALLGRIND] = "callgrind",
    [SM_EXPORT_CSV] = "csv",
    [SM_EXPORT_JSONL] = "jsonl",
    [SM_EXPORT_OTLP] = "otlp",
};

bool sm_export_format_parse(enum sm_export_format *f, const char *name) {
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            *f = (enum sm_export_format)i;
            return true;
        }
    }
    return false;
}

bool sm_export_binary(enum sm_export_format f) {
    return f == SM_EXPORT_PPROF || f == SM_EXPORT_OTLP;
}

bool sm_export_weighs(enum sm_export_format f) {
    return f != SM_EXPORT_DHAT && f != SM_EXPORT_MASSIF;
}

enum sm_status sm_export_write(const struct sm_export *x, enum sm_export_format f,
                               struct sm_buffer *out, struct sm_error *err) {
    if (!(x->a->bytes_per_unit > 0) && !sm_export_weighs(f)) {
        sm_error_set(err,
                     "the trace does not tell its sampling rate, so that bytes are unknown, and %s "
                     "holds nothing else; export to pprof, collapsed or csv, which count samples",
                     names[f]);
        return SM_FAILED;
    }
    switch (f) {
    case SM_EXPORT_PPROF:
        sm_export_pprof(x, out, true);
        break;
    case SM_EXPORT_COLLAPSED:
        sm_export_collapsed(x, out);
        break;
    case SM_EXPORT_SPEEDSCOPE:
        sm_export_speedscope(x, out);
        break;
    case SM_EXPORT_DHAT:
        sm_export_dhat(x, out);
        break;
    case SM_EXPORT_MASSIF:
        sm_export_massif(x, out);
        break;
    case SM_EXPORT_CALLGRIND:
        sm_export_callgrind(x, out);
        break;
    case SM_EXPORT_CSV:
        sm_export_rows(x, out, false);
        break;
    case SM_EXPORT_JSONL:
        sm_export_rows(x, out, true);
        break;
    case SM_EXPORT_OTLP:
        sm_export_otlp(x, out);
        break;
    }
    return SM_OK;
}
