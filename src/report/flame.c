/* See flame.h. The file works alone: a script of its own zooms (click) and searches; without scripts it is a
   picture with a title on each box. */
#include "report/flame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/text.h"

#define ROW 18
#define TOP 44
#define LEAST_PIXELS 0.3

/* Written into SVG and HTML alike. Names are read from the titles; nothing from the trace is part of it. */
static const char script[] =
    "(function(){var "
    "d=document,s=d.getElementById('flame'),g=[].slice.call(s.querySelectorAll('g.b')),"
    "m=d.getElementById('m'),W=+s.getAttribute('data-w');\n"
    "function set(x,w){g.forEach(function(n){var "
    "a=+n.dataset.x,b=+n.dataset.w,r=n.children[1],t=n.children[2];"
    "var l=(a-x)/w*W,k=b/w*W;var on=k>0.3&&l+k>0&&l<W;n.style.display=on?'':'none';if(!on)return;"
    "if(l<0){k+=l;l=0}if(l+k>W)k=W-l;r.setAttribute('x',l);r.setAttribute('width',Math.max(0.3,k-0."
    "5));"
    "if(t){var c=Math.floor((k-6)/6.6),q=n.dataset.n;t.setAttribute('x',l+3);"
    "t.textContent=c<3?'':q.length<=c?q:q.slice(0,Math.ceil(c/"
    "2))+'\\u2026'+q.slice(q.length-Math.floor(c/2)+1)}})}\n"
    "g.forEach(function(n){n.addEventListener('click',function(){set(+n.dataset.x,+n.dataset.w)})})"
    ";\n"
    "function find(q){var on=q!=='',end=-1,sum=0,k=0;q=q.toLowerCase();g.forEach(function(n){"
    "var "
    "h=on&&n.children[0].textContent.toLowerCase().indexOf(q)>=0;n.classList.toggle('dim',on&&!h);"
    "if(h){k++;}});var seen=[];if(on){g.forEach(function(n){if(n.classList.contains('dim'))return;"
    "var a=+n.dataset.x,b=a+ +n.dataset.w;if(!seen.some(function(z){return "
    "a>=z[0]-1e-9&&b<=z[1]+1e-9})){"
    "seen.push([a,b]);sum+=b-a}})}m.textContent=on?k+' boxes match, "
    "'+(sum*100).toFixed(1)+'%':''}\n"
    "var i=d.getElementById('q');if(i)i.addEventListener('input',function(){find(i.value)});"
    "else "
    "d.addEventListener('keydown',function(e){if(e.key==='/"
    "'){find(prompt('search')||'');e.preventDefault()}});\n"
    "d.getElementById('reset').addEventListener('click',function(){set(0,1);if(i)i.value='';find(''"
    ")})})();";

static void escaped(struct sm_buffer *out, const char *text, size_t bytes) {
    struct sm_buffer safe;
    sm_buffer_init(&safe, -1);
    sm_text_safe(&safe, text, bytes);
    for (size_t i = 0; i < safe.used; i++) {
        char c = safe.data[i];
        if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            sm_buffer_printf(out, "&#%d;", c);
        else
            sm_buffer_char(out, c);
    }
    sm_buffer_release(&safe);
}

/* The same module has the same hue in every picture. */
static void module_colour(struct sm_buffer *out, const struct sm_view *v, uint32_t key) {
    const struct sm_analysis *a = v->analysis;
    const struct sm_function *f = &a->functions[a->frames[v->spot[key]].function];
    const char *module = sm_text(a, f->module), *name = sm_text(a, f->name);
    uint32_t hue = 2166136261u, shade = 2166136261u;
    for (const char *c = module; *c != 0 && *c != '.' && *c != '_'; c++)
        hue = (hue ^ (unsigned char)*c) * 16777619u;
    for (const char *c = name; *c != 0; c++)
        shade = (shade ^ (unsigned char)*c) * 16777619u;
    if (module[0] == 0)
        sm_buffer_printf(out, "hsl(0 0%% %u%%)", 74 + shade % 9);
    else
        sm_buffer_printf(out, "hsl(%u %u%% %u%%)", hue % 360, 48 + hue / 360 % 18, 68 + shade % 10);
}

/* What stacks of the other tree weigh: by a hash of the ids from the root down. */
struct before {
    struct sm_map map; /* hash -> node */
    const struct sm_tree_report *r;
    double scale;
};

static uint64_t *hashes(const struct sm_tree_report *r) {
    const struct sm_merged *m = &r->merged;
    uint64_t *hash = sm_alloc((size_t)m->n_nodes * sizeof *hash);
    struct sm_buffer id;
    sm_buffer_init(&id, -1);
    hash[0] = 1;
    for (uint32_t i = 1; i < m->n_nodes; i++) {
        id.used = 0;
        sm_place_id(&id, r->view, m->nodes[i].key);
        uint64_t h = hash[m->nodes[i].parent];
        for (size_t k = 0; k < id.used; k++)
            h = (h ^ (unsigned char)id.data[k]) * 1099511628211u;
        hash[i] = sm_mix64(h + 0x9e3779b97f4a7c15u);
    }
    sm_buffer_release(&id);
    return hash;
}

static double value_of(const struct sm_tree_report *r, const struct sm_sum *sum) {
    struct sm_estimate e = sm_weight_estimate(r->weigher, sum);
    return isnan(e.value) ? (double)sum->units : e.value;
}

static void remember(struct before *b, const struct sm_tree_report *r) {
    uint64_t *hash = hashes(r);
    for (uint32_t i = 0; i < r->merged.n_nodes; i++)
        sm_map_put(&b->map, hash[i], i);
    b->r = r;
    free(hash);
}

struct writing {
    struct sm_buffer *out;
    const struct sm_tree_report *r;
    const struct sm_flame_options *o;
    const struct before *before;
    const uint64_t *hash;
    double width, whole;
    uint32_t max_depth;
};

static void box(struct writing *w, uint32_t i, double x, double share) {
    const struct sm_merged_node *n = &w->r->merged.nodes[i];
    struct sm_buffer name;
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES], c[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_weight_estimate(w->r->weigher, &n->total);
    double now = value_of(w->r, &n->total), was = 0;
    uint32_t other;
    bool callers = w->r->options.direction == SM_CALLERS;
    unsigned y = TOP + ROW * (callers ? n->depth : w->max_depth - n->depth);
    sm_buffer_init(&name, -1);
    sm_view_name(w->r->view, n->key, &name);
    sm_buffer_printf(w->out, "<g class=\"b\" data-x=\"%.9g\" data-w=\"%.9g\" data-n=\"", x, share);
    escaped(w->out, name.data, name.used);
    sm_buffer_text(w->out, "\"><title>");
    name.used = 0;
    sm_show_key(&name, w->r->view, n->key, true);
    escaped(w->out, name.data, name.used);
    sm_buffer_printf(w->out, "\n%s%s, ",
                     sm_show_value(a, w->r->asked, sm_weight_measure(&w->r->weigher->weight), now),
                     e.exact ? " exactly" : "");
    sm_number_percent(b, share, 1);
    escaped(w->out, b, strlen(b)); /* "<0.1%" */
    sm_buffer_printf(w->out, ", %s samples", sm_number_count(c, n->total.samples));
    if (!e.exact && !isnan(e.value))
        sm_buffer_printf(w->out, " (95 %%: ±%s)", sm_show_error(a, &e));
    if (w->before != NULL) {
        if (sm_map_get(&w->before->map, w->hash[i], &other))
            was =
                value_of(w->before->r, &w->before->r->merged.nodes[other].total) * w->before->scale;
        sm_buffer_printf(
            w->out, "\nbefore: %s",
            sm_show_value(a, w->r->asked, sm_weight_measure(&w->r->weigher->weight), was));
    }
    sm_buffer_printf(w->out,
                     "</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%u\" fill=\"",
                     x * w->width, y, fmax(0.3, share * w->width - 0.5), ROW - 1);
    if (i == 0) {
        sm_buffer_text(w->out, "#dfe3e8");
    } else if (w->before != NULL) {
        double most = fmax(now, was), change = most > 0 ? (now - was) / most : 0;
        sm_buffer_printf(w->out, "hsl(%d %d%% %d%%)", change > 0 ? 4 : 140,
                         (int)(fabs(change) * 75), (int)(86 - fabs(change) * 20));
    } else {
        module_colour(w->out, w->r->view, n->key);
    }
    sm_buffer_printf(w->out, "\"/><text x=\"%.2f\" y=\"%u\">", x * w->width + 3, y + 13);
    int room = (int)((share * w->width - 6) / 6.6);
    if (room >= 3) {
        struct sm_buffer cut, safe;
        sm_buffer_init(&cut, -1);
        sm_buffer_init(&safe, -1);
        name.used = 0;
        sm_view_name(w->r->view, n->key, &name);
        sm_text_safe(&safe, name.data, name.used);
        sm_text_shortened(&cut, sm_buffer_string(&safe), safe.used, (unsigned)room, true);
        escaped(w->out, cut.data, cut.used);
        sm_buffer_release(&safe);
        sm_buffer_release(&cut);
    }
    sm_buffer_text(w->out, "</text></g>\n");
    sm_buffer_release(&name);
}

static void boxes(struct writing *w) {
    const struct sm_merged *m = &w->r->merged;
    double *next =
        sm_alloc((size_t)m->n_nodes * sizeof *next); /* where a node's next child begins */
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        double share = w->whole > 0 ? (double)m->nodes[i].total.units / w->whole : 0, x = 0;
        if (i > 0) {
            x = next[m->nodes[i].parent];
            next[m->nodes[i].parent] += share;
        }
        next[i] = x;
        if (share * w->width >= LEAST_PIXELS)
            box(w, i, x, share);
    }
    free(next);
}

static void head(struct writing *w) {
    char title[96];
    const struct sm_asked *q = w->r->asked;
    const char *slash = strrchr(q->a->meta.executable, '/');
    const char *program = slash != NULL ? slash + 1 : q->a->meta.executable;
    sm_buffer_text(w->out, "<text x=\"4\" y=\"16\" font-weight=\"bold\">");
    if (w->o->title[0] != 0) {
        escaped(w->out, w->o->title, strlen(w->o->title));
    } else {
        escaped(w->out, program, strlen(program));
        sm_buffer_printf(w->out, ": %s", sm_weight_title(&w->r->weigher->weight, title));
        if (q->filter_text[0] != 0) {
            sm_buffer_text(w->out, ", ");
            escaped(w->out, q->filter_text, strlen(q->filter_text));
        }
    }
    sm_buffer_text(w->out, "</text><text x=\"4\" y=\"34\" id=\"m\"></text>");
    sm_buffer_printf(w->out,
                     "<text id=\"reset\" class=\"reset\" x=\"%.0f\" y=\"16\" "
                     "text-anchor=\"end\">reset zoom%s</text>\n",
                     w->width - 4, w->o->html ? "" : "; / searches");
}

static void svg(struct writing *w) {
    unsigned height = TOP + ROW * (w->max_depth + 1);
    sm_buffer_printf(
        w->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"flame\" data-w=\"%.0f\" viewBox=\"0 0 %.0f "
        "%u\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<style>.b{cursor:pointer}.b text{pointer-events:none;fill:#222}.b:hover rect{stroke:#222}"
        ".dim{opacity:.25}.reset{cursor:pointer;fill:#1257a8}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        w->width, w->width, height);
    head(w);
    boxes(w);
    if (!w->o->html)
        sm_buffer_printf(w->out, "<script><![CDATA[%s]]></script>\n", script);
    sm_buffer_text(w->out, "</svg>\n");
}

void sm_flame_write(struct sm_buffer *out, const struct sm_tree_report *r,
                    const struct sm_flame_options *o) {
    const struct sm_merged *m = &r->merged;
    struct before before = {.scale = 1};
    struct writing w = {.out = out,
                        .r = r,
                        .o = o,
                        .width = o->width != 0 ? o->width : 1200,
                        .whole = (double)m->nodes[0].total.units};
    uint64_t *hash = NULL;
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        bool drawn = (double)m->nodes[i].total.units * w.width >= LEAST_PIXELS * w.whole;
        if (drawn && m->nodes[i].depth > w.max_depth)
            w.max_depth = m->nodes[i].depth;
    }
    if (o->before != NULL) {
        remember(&before, o->before);
        double was = value_of(o->before, &o->before->merged.nodes[0].total);
        if (o->normalise && was > 0)
            before.scale = value_of(r, &m->nodes[0].total) / was;
        w.hash = hash = hashes(r);
        w.before = &before;
    }
    if (o->html)
        sm_buffer_text(out,
                       "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>statmem "
                       "flame graph</title>\n"
                       "<style>body{margin:8px;font:14px sans-serif;background:#fff;color:#222}"
                       "svg{width:100%;height:auto}</style>\n"
                       "<label>search <input id=\"q\" type=\"search\"></label>\n");
    svg(&w);
    if (o->html)
        sm_buffer_printf(out, "<script>%s</script></html>\n", script);
    sm_map_release(&before.map);
    free(hash);
}
