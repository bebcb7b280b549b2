/* What pprof's format and OTLP's profiles share: tables of functions, locations and objects by number. Hosted,
   internal to src/export.

   A location is one place in the code with all that is inlined there: the tree's nodes that share their parent's
   location follow it in one list of lines. */
#ifndef SM_EXPORT_PPROF_H
#define SM_EXPORT_PPROF_H

#include "export/model.h"
#include "export/proto.h"

struct sm_ex_function {
    uint32_t name, file; /* strings */
};
/* Lines of a location form a chain from the innermost outwards. */
struct sm_ex_location {
    uint32_t outer; /* the location without the innermost line; 0 = none */
    uint32_t function, line, column, mapping;
};
struct sm_ex_tables {
    struct sm_ex_tree *tree;
    struct sm_proto_strings strings;
    struct sm_map function_numbers, location_numbers, mapping_numbers;
    struct sm_ex_function *functions; /* from 1 */
    struct sm_ex_location *locations; /* from 1 */
    uint32_t *mappings;               /* from 1: names; 1 is the program */
    size_t n_functions, n_locations, n_mappings;
    size_t functions_capacity, locations_capacity, mappings_capacity;
    uint32_t *of_node; /* node of the tree -> location that ends with it */
    uint32_t *stack;   /* room for the locations of one path */
};
void sm_ex_tables_make(struct sm_ex_tables *t, struct sm_ex_tree *tree);
void sm_ex_tables_release(struct sm_ex_tables *t);
/* Locations of a stack, innermost first, in t->stack; returns how many. */
uint32_t sm_ex_tables_stack(struct sm_ex_tables *t, uint32_t node);
/* The program's build id in hexadecimal digits; "" when unknown. Appended. */
void sm_ex_build_id(struct sm_buffer *out, const struct sm_meta *meta);
/* Sentences about what the figures are and what was lost, for comments; stops at NULL. to: 256 bytes */
const char *sm_ex_comment(const struct sm_export *x, uint32_t index, char to[256]);

#endif
