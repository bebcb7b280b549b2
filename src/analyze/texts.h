/* Texts, functions and frames, each once, on the way to their places in an analysis. Hosted, internal to
   src/analyze. */
#ifndef SM_ANALYZE_TEXTS_H
#define SM_ANALYZE_TEXTS_H

#include "analyze/analysis.h"
#include "util/map.h"
#include "util/vec.h"

struct sm_texts {
    struct sm_names names;
    uint32_t *offsets; /* by number in `names` */
    size_t n_offsets, offsets_capacity;
    struct sm_vec blob;
};
void sm_texts_init(struct sm_texts *t);
void sm_texts_release(struct sm_texts *t);
sm_text_id sm_texts_add(struct sm_texts *t, const char *text);
sm_text_id sm_texts_add_bytes(struct sm_texts *t, const char *text, size_t bytes);

/* Functions and frames of locations. */
struct sm_places {
    struct sm_texts *texts;
    struct sm_map function_numbers; /* name | file << 32 -> functions */
    struct sm_vec functions;        /* struct sm_function */
    struct sm_map frame_numbers;    /* hash -> first of a chain */
    struct sm_vec frames;           /* struct sm_frame */
    struct sm_vec frame_next;       /* u32 */
    /* frames of location id: list[first[id] .. first[id + 1]), outermost first, at least one */
    uint32_t *first, n_locations;
    struct sm_vec list;
};
void sm_places_init(struct sm_places *p,
                    struct sm_texts *texts); /* frame and function 0: the root */
void sm_places_release(struct sm_places *p);
void sm_places_of_trace(struct sm_places *p,
                        const struct sm_trace *t); /* when the cursors are done */
/* A frame that stands for no place: "(no stack)". */
uint32_t sm_places_pseudo(struct sm_places *p, const char *name);

/* The module of a function, appended to nothing else: OCaml names begin with their modules' ("Stdlib.List.map" ->
   "Stdlib.List"), native ones have their object in brackets as file ("[libc.so.6]" -> "libc.so.6"), the rest is the
   file's base name without extension, first letter raised ("solver.ml" -> "Solver"). Returns bytes in *to. */
size_t sm_module_of(const char *name, const char *file, char *to, size_t to_bytes);

#endif
