#include "report/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/number.h"

/* Growth below this part of the peak, or below a megabyte, is none. */
#define NO_GROWTH 0.05
#define NO_GROWTH_BYTES (1 << 20)

/* ---- what the figures say ---- */

static int64_t at_least_0(int64_t x) {
    return x > 0 ? x : 0;
}

/* Figures that are not known are -1. */
static void split(struct sm_memory *m, const int64_t *latest, int64_t ns) {
    struct sm_memory_moment *to = &m->moments[m->n++];
    int64_t *b = to->bytes;
    memset(to, 0, sizeof *to);
    to->ns = ns;
    b[SM_MEMORY_RSS] = latest[SM_COUNTER_RSS];
    if (latest[SM_COUNTER_RSS_ANON] < 0)
        return;
    int64_t heap_words = latest[SM_COUNTER_HEAP_WORDS];
    int64_t used = latest[SM_COUNTER_MALLOC_USED], total = latest[SM_COUNTER_MALLOC_TOTAL];
    int64_t anonymous = latest[SM_COUNTER_RSS_ANON];
    m->has[SM_MEMORY_FILE] = m->has[SM_MEMORY_UNEXPLAINED] = true;
    b[SM_MEMORY_FILE] =
        at_least_0(latest[SM_COUNTER_RSS_FILE]) + at_least_0(latest[SM_COUNTER_RSS_SHMEM]);
    if (heap_words >= 0) {
        m->has[SM_MEMORY_HEAP] = true;
        b[SM_MEMORY_HEAP] = heap_words * m->asked->a->word_bytes;
    }
    if (used >= 0) {
        m->has[SM_MEMORY_NATIVE] = true;
        b[SM_MEMORY_NATIVE] = at_least_0(used - at_least_0(latest[SM_COUNTER_HEAP_IN_MALLOC]));
    }
    int64_t rest = anonymous - b[SM_MEMORY_HEAP] - b[SM_MEMORY_NATIVE];
    if (used >= 0 && total >= used) {
        m->has[SM_MEMORY_KEPT] = true;
        b[SM_MEMORY_KEPT] = at_least_0(total - used < rest ? total - used : rest);
    }
    rest -= b[SM_MEMORY_KEPT];
    b[SM_MEMORY_UNEXPLAINED] = at_least_0(rest);
    b[SM_MEMORY_ABSENT] = at_least_0(-rest);
    m->has[SM_MEMORY_ABSENT] |= rest < 0;
}

static int64_t largest(const struct sm_memory *m) {
    int64_t most = 0;
    for (uint32_t i = 0; i < m->n; i++)
        for (int part = 0; part < SM_MEMORY_PARTS; part++)
            most = m->moments[i].bytes[part] > most ? m->moments[i].bytes[part] : most;
    return most;
}

static int compare_i64(const void *left, const void *right) {
    int64_t x = *(const int64_t *)left, y = *(const int64_t *)right;
    return x < y ? -1 : x > y;
}

/* The usual distance is what the recorder tells, else that of the readings. The time from the last reading to the trace's end
   is a gap like others. */
static void find_gaps(struct sm_memory *m, const int64_t *times, uint32_t n_times) {
    uint32_t n = n_times - 1u;
    int64_t told = m->last[SM_COUNTER_INTERVAL_NS], rest = m->duration_ns - times[n];
    int64_t *distances = sm_alloc((n + 1u) * sizeof *distances);
    for (uint32_t i = 0; i < n; i++)
        distances[i] = times[i + 1] - times[i];
    qsort(distances, n, sizeof *distances, compare_i64);
    m->interval_ns = n >= 2 ? distances[n / 2] : 0;
    if (told > 0 && (m->interval_ns == 0 || m->interval_ns > 3 * told))
        m->interval_ns = told;
    distances[n++] = rest;
    for (uint32_t i = 0; i < n && m->interval_ns > 0; i++) {
        if (distances[i] > 3 * m->interval_ns) {
            m->n_gaps++;
            m->gaps_ns += distances[i];
        }
    }
    m->ends_early = m->interval_ns > 0 && rest > 3 * m->interval_ns && rest > m->duration_ns / 10;
    free(distances);
}

static int64_t grown(const struct sm_memory *m, enum sm_memory_part part) {
    return m->moments[m->n - 1].bytes[part] - m->moments[0].bytes[part];
}

static void judge(struct sm_memory *m) {
    int64_t peak = m->moments[m->peak].bytes[SM_MEMORY_RSS];
    m->growth = grown(m, SM_MEMORY_RSS);
    if (m->growth < NO_GROWTH_BYTES || (double)m->growth < NO_GROWTH * (double)peak ||
        !m->has[SM_MEMORY_FILE])
        return;
    for (int part = SM_MEMORY_FILE; part < SM_MEMORY_ABSENT; part++)
        if (m->grew == SM_MEMORY_RSS || grown(m, (enum sm_memory_part)part) > grown(m, m->grew))
            m->grew = (enum sm_memory_part)part;
}

/* The figures of one reading share their time; those of OCaml's runtime come at times of their own, and hold on. Readings
   without the allocator's figures, which are asked for less often where that is dear, are left out. */
bool sm_memory_make(struct sm_memory *m, const struct sm_asked *asked) {
    const struct sm_analysis *a = asked->a;
    *m = (struct sm_memory){.asked = asked, .duration_ns = a->last_ns};
    uint32_t most = 0;
    for (uint32_t i = 0; i < a->n_counters; i++)
        most += a->counters[i].counter == SM_COUNTER_RSS;
    m->moments = sm_alloc_zero(most > 0 ? most : 1, sizeof *m->moments);
    int64_t *times = sm_alloc((most + 1u) * sizeof *times); /* of all readings */
    uint32_t n_times = 0;
    for (size_t i = 0; i <= SM_COUNTER_INTERVAL_NS; i++)
        m->last[i] = -1;
    bool allocator =
        false; /* what its figures miss now and then does not stand beside older ones */
    for (uint32_t i = 0; i < a->n_counters; i++)
        allocator |= a->counters[i].counter == SM_COUNTER_MALLOC_USED;
    for (uint32_t i = 0, next; i < a->n_counters; i = next) {
        bool reading = false, whole = !allocator;
        for (next = i; next < a->n_counters && a->counters[next].ns == a->counters[i].ns; next++) {
            const struct sm_counter_sample *c = &a->counters[next];
            if (c->counter <= SM_COUNTER_INTERVAL_NS && c->value >= 0)
                m->last[c->counter] = c->value;
            reading |= c->counter == SM_COUNTER_RSS && c->value >= 0;
            whole |= c->counter == SM_COUNTER_MALLOC_USED;
        }
        if (reading)
            times[n_times++] = a->counters[i].ns;
        if (reading && whole)
            split(m, m->last, a->counters[i].ns);
    }
    if (m->n == 0) {
        free(times);
        return false;
    }
    for (uint32_t i = 1; i < m->n; i++)
        if (m->moments[i].bytes[SM_MEMORY_RSS] > m->moments[m->peak].bytes[SM_MEMORY_RSS])
            m->peak = i;
    m->largest = largest(m);
    find_gaps(m, times, n_times);
    free(times);
    judge(m);
    return true;
}

void sm_memory_release(struct sm_memory *m) {
    free(m->moments);
    *m = (struct sm_memory){0};
}

/* ---- text ---- */

static const struct {
    const char *key, *title;
} parts[SM_MEMORY_PARTS] = {
    {"rss", "resident memory (RSS)"},
    {"file", "files: program, libraries, shared"},
    {"heap", "OCaml's heap"},
    {"native", "native memory in use (malloc)"},
    {"kept", "free, kept by malloc"},
    {"unexplained", "unexplained"},
    {"absent", "taken, but not resident"},
};

enum { COURSE_COLUMNS = 24 };

/* The largest value of each span as a bar; blank where nothing was read. */
static void course(struct sm_buffer *out, const struct sm_memory *m, enum sm_memory_part part) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char marks[] = "_.,-=+*#";
    int64_t from = m->moments[0].ns, to = m->moments[m->n - 1].ns + 1;
    double whole = (double)m->largest;
    int64_t most[COURSE_COLUMNS];
    for (int i = 0; i < COURSE_COLUMNS; i++)
        most[i] = -1;
    for (uint32_t i = 0; i < m->n; i++) {
        int column = (int)((__int128)(m->moments[i].ns - from) * COURSE_COLUMNS / (to - from));
        int64_t value = m->moments[i].bytes[part];
        most[column] = value > most[column] ? value : most[column];
    }
    /* Readings that are farther apart than columns leave no gaps between them. */
    int64_t column_ns = (to - from) / COURSE_COLUMNS, reach = 3 * m->interval_ns;
    int held = 0,
        reaches = column_ns > 0 ? (int)(reach / column_ns < 99 ? reach / column_ns : 99) : 99;
    for (int i = 0; i < COURSE_COLUMNS; i++) {
        held = most[i] >= 0 ? 0 : held + 1;
        if (most[i] < 0 && i > 0 && held <= reaches)
            most[i] = most[i - 1];
        int level = whole > 0 && most[i] > 0 ? (int)((double)most[i] / whole * 8) : 0;
        level = level > 7 ? 7 : level;
        if (most[i] < 0)
            sm_buffer_char(out, ' ');
        else if (m->asked->utf8)
            sm_buffer_text(out, bars[level]);
        else
            sm_buffer_char(out, marks[level]);
    }
}

static void growth_cell(struct sm_table *t, const struct sm_memory *m, int64_t bytes, bool most) {
    char number[SM_NUMBER_BYTES];
    sm_number_bytes(number, (double)(bytes < 0 ? -bytes : bytes), m->asked->bytes);
    sm_table_cellf(t, most ? SM_YELLOW : SM_PLAIN, "%s%s",
                   bytes < 0   ? (m->asked->utf8 ? "−" : "-")
                   : bytes > 0 ? "+"
                               : "",
                   number);
}

static void print_parts(struct sm_buffer *out, const struct sm_memory *m) {
    char number[SM_NUMBER_BYTES];
    bool wide = m->asked->width >= 76 + COURSE_COLUMNS;
    const uint32_t at[] = {0, m->peak, m->n - 1};
    struct sm_table t;
    sm_table_init(&t, wide ? 6 : 5, m->asked->width, m->asked->colours, m->asked->utf8);
    t.flexible = 0;
    for (unsigned i = 1; i < 5; i++)
        t.align[i] = SM_RIGHT;
    sm_table_cell(&t, SM_DIM, "");
    sm_table_cell(&t, SM_DIM, "first");
    sm_table_cell(&t, SM_DIM, "at RSS peak");
    sm_table_cell(&t, SM_DIM, "last");
    sm_table_cell(&t, SM_DIM, "growth");
    if (wide)
        sm_table_cell(&t, SM_DIM, "course");
    for (int part = 0; part < SM_MEMORY_PARTS; part++) {
        enum sm_memory_part p = (enum sm_memory_part)part;
        bool most = p != SM_MEMORY_RSS && p == m->grew;
        if (p != SM_MEMORY_RSS && !m->has[p])
            continue;
        sm_table_cellf(&t, p == SM_MEMORY_RSS ? SM_BOLD : SM_PLAIN, "%s%s",
                       p == SM_MEMORY_RSS      ? ""
                       : p == SM_MEMORY_ABSENT ? (m->asked->utf8 ? "− " : "- ")
                                               : "  ",
                       parts[p].title);
        for (unsigned i = 0; i < 3; i++)
            sm_table_cell(
                &t, p == SM_MEMORY_RSS ? SM_BOLD : SM_PLAIN,
                sm_number_bytes(number, (double)m->moments[at[i]].bytes[p], m->asked->bytes));
        growth_cell(&t, m, grown(m, p), most);
        if (wide) {
            struct sm_buffer b;
            sm_buffer_init(&b, -1);
            course(&b, m, p);
            sm_table_cell(&t, most ? SM_YELLOW : SM_CYAN, sm_buffer_string(&b));
            sm_buffer_release(&b);
        }
    }
    sm_table_print(&t, out);
    sm_table_release(&t);
}

/* What grew, in words, and where to look. Without line ends. */
static void verdict(struct sm_buffer *out, const struct sm_memory *m) {
    char whole[SM_NUMBER_BYTES], part[SM_NUMBER_BYTES], most[SM_NUMBER_BYTES];
    char before[SM_NUMBER_BYTES];
    sm_number_bytes(whole, (double)m->growth, false);
    sm_number_bytes(part, (double)grown(m, m->grew), false);
    int64_t highest = 0;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->moments[i].bytes[SM_MEMORY_NATIVE] > highest)
            highest = m->moments[i].bytes[SM_MEMORY_NATIVE];
    sm_number_bytes(most, (double)highest, false);
    if (m->ends_early)
        sm_buffer_printf(out, "The readings end %s before the trace does. ",
                         sm_number_duration(before, m->duration_ns - m->moments[m->n - 1].ns));
    switch (m->grew) {
    case SM_MEMORY_RSS:
        sm_buffer_text(
            out,
            !m->has[SM_MEMORY_FILE] ? "The trace does not tell what the resident memory is made of."
            : m->n == 1             ? "There is a single reading, so that growth is not known."
                        : "Resident memory did not grow much from the first reading to the last.");
        return;
    case SM_MEMORY_FILE:
        sm_buffer_printf(out,
                         "Resident memory grew by %s, %s of it parts of files that came into "
                         "memory: libraries, mapped data, shared memory.",
                         whole, part);
        return;
    case SM_MEMORY_HEAP:
        sm_buffer_printf(out,
                         "Resident memory grew by %s, and OCaml's heap by %s: statmem top -w "
                         "live@end tells what lives in it, statmem leaks what does not die.",
                         whole, part);
        return;
    case SM_MEMORY_NATIVE:
        if (m->has[SM_MEMORY_HEAP])
            sm_buffer_printf(
                out,
                "Resident memory grew by %s outside of OCaml's heap: native memory in use "
                "by %s. statmem top --source native -w live@end tells who holds it.",
                whole, part);
        else
            sm_buffer_printf(out,
                             "Resident memory grew by %s, native memory in use by %s: statmem top "
                             "-w live@end tells who holds it, statmem leaks what does not die.",
                             whole, part);
        return;
    case SM_MEMORY_KEPT:
        sm_buffer_printf(out,
                         "Resident memory grew by %s, but %s of it is free: malloc keeps it for "
                         "later (%s were in use at one time). That is no leak; malloc_trim gives "
                         "it back.",
                         whole, part, most);
        return;
    default:
        sm_buffer_printf(out,
                         "Resident memory grew by %s, %s of it neither OCaml's heap nor malloc's: "
                         "stacks, minor heaps, memory mapped by mmap itself.",
                         whole, part);
    }
}

static void print_collections(struct sm_buffer *out, const struct sm_memory *m) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    if (m->last[SM_COUNTER_MINOR_COLLECTIONS] < 0)
        return;
    sm_buffer_printf(
        out, "Collections: %s minor, %s major",
        sm_number_count(a, (uint64_t)m->last[SM_COUNTER_MINOR_COLLECTIONS]),
        sm_number_count(b, (uint64_t)at_least_0(m->last[SM_COUNTER_MAJOR_COLLECTIONS])));
    if (m->last[SM_COUNTER_COMPACTIONS] > 0)
        sm_buffer_printf(out, ", %s compaction%s",
                         sm_number_count(a, (uint64_t)m->last[SM_COUNTER_COMPACTIONS]),
                         m->last[SM_COUNTER_COMPACTIONS] == 1 ? "" : "s");
    if (m->last[SM_COUNTER_GC_PAUSE_NS] > 0)
        sm_buffer_printf(out, "; they held up domains for %s in all, %s at most at a time",
                         sm_number_duration(a, m->last[SM_COUNTER_GC_PAUSE_NS]),
                         sm_number_duration(b, m->last[SM_COUNTER_GC_LONGEST_PAUSE_NS]));
    sm_buffer_text(out, ".\n");
}

static void print_system(struct sm_buffer *out, const struct sm_memory *m) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    if (m->last[SM_COUNTER_PAGE_FAULTS] >= 0)
        sm_buffer_printf(
            out, "Page faults: %s, %s of them waited for a device.\n",
            sm_number_count(a, (uint64_t)m->last[SM_COUNTER_PAGE_FAULTS]),
            sm_number_count(b, (uint64_t)at_least_0(m->last[SM_COUNTER_MAJOR_FAULTS])));
    if (m->last[SM_COUNTER_PSS] >= 0)
        sm_buffer_printf(out, "Its share of what processes have together counted (PSS): %s.\n",
                         sm_number_bytes(a, (double)m->last[SM_COUNTER_PSS], m->asked->bytes));
    if (m->last[SM_COUNTER_SWAP] > 0)
        sm_buffer_printf(out, "Swapped out: %s.\n",
                         sm_number_bytes(a, (double)m->last[SM_COUNTER_SWAP], m->asked->bytes));
}

void sm_memory_print(struct sm_buffer *out, const struct sm_memory *m) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    print_parts(out, m);
    sm_buffer_char(out, '\n');
    struct sm_buffer words;
    sm_buffer_init(&words, -1);
    verdict(&words, m);
    sm_styled(out, m->asked->colours, SM_BOLD, sm_buffer_string(&words));
    sm_buffer_release(&words);
    sm_buffer_text(out, "\n\n");
    print_collections(out, m);
    print_system(out, m);
    sm_buffer_printf(out, "%s reading%s of the system and the allocator", sm_number_count(a, m->n),
                     m->n == 1 ? "" : "s");
    if (m->interval_ns > 0)
        sm_buffer_printf(out, ", usually %s apart", sm_number_duration(b, m->interval_ns));
    sm_buffer_text(out, "; these are no estimates.\n");
    if (m->n_gaps > 0)
        sm_buffer_printf(out, "Readings are missing in %s place%s, %s in all.\n",
                         sm_number_count(a, m->n_gaps), m->n_gaps == 1 ? "" : "s",
                         sm_number_duration(b, m->gaps_ns));
}

/* ---- JSON and CSV ---- */

static void json_moment(struct sm_json *j, const char *key, const struct sm_memory *m, uint32_t i) {
    sm_json_open(j, key, '{');
    sm_json_i64(j, "ns", m->moments[i].ns);
    for (int part = 0; part < SM_MEMORY_PARTS; part++)
        if (part == SM_MEMORY_RSS || m->has[part])
            sm_json_i64(j, parts[part].key, m->moments[i].bytes[part]);
    sm_json_close(j, '}');
}

void sm_memory_members(struct sm_json *j, const struct sm_memory *m) {
    struct sm_buffer words;
    sm_json_text(j, "unit", "bytes");
    json_moment(j, "first", m, 0);
    json_moment(j, "peak", m, m->peak);
    json_moment(j, "last", m, m->n - 1);
    sm_json_i64(j, "growth", m->growth);
    if (m->grew != SM_MEMORY_RSS)
        sm_json_text(j, "grew", parts[m->grew].key);
    else
        sm_json_null(j, "grew");
    sm_buffer_init(&words, -1);
    verdict(&words, m);
    sm_json_text(j, "verdict", sm_buffer_string(&words));
    sm_buffer_release(&words);
    sm_json_i64(j, "interval_ns", m->interval_ns);
    sm_json_u64(j, "gaps", m->n_gaps);
    sm_json_i64(j, "gaps_ns", m->gaps_ns);
}

/* The moment of span s of n_spans. */
static const struct sm_memory_moment *of_span(const struct sm_memory *m, uint32_t s,
                                              uint32_t n_spans) {
    uint32_t from = (uint32_t)((uint64_t)m->n * s / n_spans);
    uint32_t to = (uint32_t)((uint64_t)m->n * (s + 1) / n_spans);
    const struct sm_memory_moment *most = &m->moments[from];
    for (uint32_t i = from + 1; i < to; i++)
        if (m->moments[i].bytes[SM_MEMORY_RSS] > most->bytes[SM_MEMORY_RSS])
            most = &m->moments[i];
    return most;
}

void sm_memory_columns(struct sm_json *j, const struct sm_memory *m, uint32_t most) {
    uint32_t n = m->n < most ? m->n : most;
    sm_json_open(j, "ns", '[');
    for (uint32_t s = 0; s < n; s++)
        sm_json_i64(j, NULL, of_span(m, s, n)->ns);
    sm_json_close(j, ']');
    for (int part = 0; part < SM_MEMORY_PARTS; part++) {
        if (part != SM_MEMORY_RSS && !m->has[part])
            continue;
        sm_json_open(j, parts[part].key, '[');
        for (uint32_t s = 0; s < n; s++)
            sm_json_i64(j, NULL, of_span(m, s, n)->bytes[part]);
        sm_json_close(j, ']');
    }
}

void sm_memory_json(struct sm_buffer *out, const struct sm_memory *m) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_asked(&j, m->asked);
    sm_memory_members(&j, m);
    sm_json_open(&j, "moments", '[');
    for (uint32_t i = 0; i < m->n; i++)
        json_moment(&j, NULL, m, i);
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

void sm_memory_csv(struct sm_buffer *out, const struct sm_memory *m) {
    sm_buffer_text(out, "ns");
    for (int part = 0; part < SM_MEMORY_PARTS; part++)
        sm_buffer_printf(out, ",%s", parts[part].key);
    sm_buffer_char(out, '\n');
    for (uint32_t i = 0; i < m->n; i++) {
        sm_buffer_printf(out, "%" PRId64, m->moments[i].ns);
        for (int part = 0; part < SM_MEMORY_PARTS; part++) {
            sm_buffer_char(out, ',');
            if (part == SM_MEMORY_RSS || m->has[part])
                sm_buffer_printf(out, "%" PRId64, m->moments[i].bytes[part]);
        }
        sm_buffer_char(out, '\n');
    }
}
