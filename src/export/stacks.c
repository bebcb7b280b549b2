/* Two formats of stacks with weights. Collapsed stacks ("main;f;g 123", one line per stack), what Brendan Gregg's
   FlameGraph and many others read; and speedscope's JSON
   (https://www.speedscope.app/file-format-schema.json), one profile per kind of value. */
#include <stdlib.h>
#include <string.h>

#include "export/model.h"
#include "util/json.h"

/* A name between semicolons, on one line. */
static void plain(struct sm_buffer *out, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        sm_buffer_char(out, c == ';' ? ':' : (unsigned char)c < 0x20 || c == 0x7F ? ' ' : c);
    }
}

void sm_export_collapsed(const struct sm_export *x, struct sm_buffer *out) {
    struct sm_ex_tree tree;
    struct sm_ex_measure measure;
    struct sm_ex_samples samples;
    struct sm_buffer name, clean;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&clean, -1);
    sm_ex_tree_make(&tree, x, x->key);
    sm_ex_measure_make(&measure, x, &x->weight, NULL, "weight");
    sm_ex_samples_make(&samples, &tree, &measure, 1, false);
    for (uint32_t i = 0; i < samples.n; i++) {
        const struct sm_ex_sample *s = &samples.list[i];
        if (s->values[0] == 0)
            continue;
        uint32_t n = sm_ex_path(&tree, s->node);
        if (n == 0)
            sm_buffer_text(out, "(all)");
        for (uint32_t k = 0; k < n; k++) {
            name.used = clean.used = 0;
            sm_view_name(&tree.view, tree.key[tree.path[k]], &name);
            sm_ex_utf8(&clean, sm_buffer_string(&name));
            if (k > 0)
                sm_buffer_char(out, ';');
            plain(out, clean.data, clean.used);
        }
        sm_buffer_char(out, ' ');
        sm_buffer_u64(out, s->values[0]);
        sm_buffer_char(out, '\n');
    }
    sm_ex_samples_release(&samples);
    sm_ex_measure_release(&measure);
    sm_ex_tree_release(&tree);
    sm_buffer_release(&name);
    sm_buffer_release(&clean);
}

static void frames(struct sm_json *j, const struct sm_ex_tree *tree) {
    sm_json_open(j, "shared", '{');
    sm_json_open(j, "frames", '[');
    for (uint32_t key = 0; key < tree->view.n_keys; key++) {
        struct sm_ex_place p = sm_ex_place(tree, key);
        sm_json_open(j, NULL, '{');
        sm_json_text(j, "name", p.name);
        if (p.file[0] != 0)
            sm_json_text(j, "file", p.file);
        if (p.line > 0)
            sm_json_u64(j, "line", p.line);
        if (p.column > 0)
            sm_json_u64(j, "col", p.column);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_close(j, '}');
}

static void profile(struct sm_json *j, struct sm_ex_tree *tree, const struct sm_ex_samples *s,
                    const struct sm_ex_measure *m, uint32_t value) {
    uint64_t total = 0;
    sm_json_open(j, NULL, '{');
    sm_json_text(j, "type", "sampled");
    sm_json_text(j, "name", m->type);
    sm_json_text(j, "unit", strcmp(m->unit, "bytes") == 0 ? "bytes" : "none");
    sm_json_u64(j, "startValue", 0);
    sm_json_open(j, "samples", '[');
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->list[i].values[value] == 0)
            continue;
        total += s->list[i].values[value];
        uint32_t n = sm_ex_path(tree, s->list[i].node);
        sm_json_open(j, NULL, '[');
        for (uint32_t k = 0; k < n; k++)
            sm_json_u64(j, NULL, tree->key[tree->path[k]]);
        sm_json_close(j, ']');
    }
    sm_json_close(j, ']');
    sm_json_open(j, "weights", '[');
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->list[i].values[value] > 0)
            sm_json_u64(j, NULL, s->list[i].values[value]);
    }
    sm_json_close(j, ']');
    sm_json_u64(j, "endValue", total);
    sm_json_close(j, '}');
}

void sm_export_speedscope(const struct sm_export *x, struct sm_buffer *out) {
    struct sm_ex_tree tree;
    struct sm_ex_measure measures[SM_EX_MEASURES];
    struct sm_ex_samples samples;
    struct sm_json j;
    uint32_t shown, n = sm_ex_heap_measures(measures, x, &shown);
    const char *program = strrchr(x->a->meta.executable, '/');
    sm_ex_tree_make(&tree, x, SM_KEY_FRAME);
    sm_ex_samples_make(&samples, &tree, measures, n, false);
    sm_json_init(&j, out, true);
    sm_json_open(&j, NULL, '{');
    sm_json_text(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
    sm_json_text(&j, "exporter", "statmem " SM_VERSION);
    sm_json_text(&j, "name", program != NULL ? program + 1 : x->a->meta.executable);
    sm_json_u64(&j, "activeProfileIndex", shown);
    frames(&j, &tree);
    sm_json_open(&j, "profiles", '[');
    for (uint32_t i = 0; i < n; i++)
        profile(&j, &tree, &samples, &measures[i], i);
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
    sm_ex_samples_release(&samples);
    sm_ex_tree_release(&tree);
    for (uint32_t i = 0; i < n; i++)
        sm_ex_measure_release(&measures[i]);
}
