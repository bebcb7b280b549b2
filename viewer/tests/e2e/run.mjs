// The viewer in Debian's Chromium, on traces made for it: run.mjs STATMEM MKTRACE TRACES [SCREENSHOTS].
// Exit 77 when there is no browser. Numbers on the page are compared with the command line's.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [statmem, mktrace, traces, shots] = process.argv.slice(2);
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
let chromium;
try {
  ({ chromium } = await import("playwright-core"));
} catch {
  console.log("skipped: viewer/node_modules is not there (npm ci)");
  process.exit(77);
}
if (!browserPath) {
  console.log("skipped: no Chromium");
  process.exit(77);
}
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "statmem-view-"));
const make = (name) => {
  const to = join(folder, `${name}.stm`);
  execFileSync(mktrace, [join(traces, `${name}.txt`), to]);
  return to;
};
const files = ["basic", "recursion", "hostile", "memory"].map(make);

function serve(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(statmem, ["view", "--no-open", ...args], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, STATMEM_CACHE: "" } });
    let text = "";
    child.stdout.on("data", (d) => {
      text += d;
      if (text.includes("\n")) resolve({ child, url: text.trim() });
    });
    child.on("exit", (code) => reject(new Error(`statmem view ended with ${code}`)));
  });
}

let passed = 0;
let failed = 0;
async function check(name, body) {
  try {
    await body();
    passed++;
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}: ${error.message.split("\n").slice(0, 6).join(" | ")}`);
  }
}
function equal(a, b) {
  if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(`${JSON.stringify(a)} is not ${JSON.stringify(b)}`);
}
function holds(condition, what) {
  if (!condition) throw new Error(what);
}

const server = await serve(files);
const origin = new URL(server.url).origin;
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const page = await context.newPage();
const complaints = [];
page.on("console", (m) => {
  if (m.type() === "error") complaints.push(m.text());
});
page.on("pageerror", (e) => complaints.push(e.message));
const outside = [];
page.on("request", (r) => {
  if (!r.url().startsWith(origin) && !r.url().startsWith("data:") && !r.url().startsWith("blob:")) outside.push(r.url());
});
const json = (command, ...rest) => JSON.parse(execFileSync(statmem, [command, "--json", ...rest], { encoding: "utf8", env: { ...process.env, STATMEM_CACHE: "" } }));
const open = async (query) => {
  await page.goto(`${origin}/${query}`);
  await page.waitForSelector("main :is(.card, .chart, canvas, table, .sites, .trouble)");
  await page.waitForFunction(() => !document.querySelector("main .busy, main .stale"));
};
const text = (selector) => page.locator(selector).first().innerText();

await page.goto(server.url);
await page.waitForSelector(".card");

await check("V5: totals, with error and samples, as at the command line", async () => {
  equal(new URL(page.url()).search, ""); // the token has left the address
  const total = json("query", files[0]).totals[0];
  equal(total.value, 192);
  holds((await text(".card strong .value")).startsWith("192 B ±"), await text(".card strong .value"));
  holds((await page.locator(".card strong .value").first().getAttribute("title")).includes("12 samples"), "the title tells the samples");
});
await check("V2: about the trace", async () => {
  await page.getByRole("button", { name: "Info" }).click();
  const panel = await text(".panel");
  for (const part of ["a test", "/usr/bin/prog", "4711", "box", "8 bytes", "2023-11-14 22:13:20 UTC", "1 sample per 16 B"]) holds(panel.includes(part), `${part} is missing`);
  await page.keyboard.press("Escape");
});
await check("V1: views by key, back is undo", async () => {
  await page.keyboard.press("3");
  await page.waitForSelector("canvas");
  equal(new URL(page.url()).search, "?view=flame");
  await page.goBack();
  await page.waitForSelector(".card");
  await page.goForward();
  await page.waitForSelector(".flame canvas");
});
await check("V15, V16, V17: keys move in the flame graph, Enter focuses, Backspace goes back", async () => {
  await open("?view=flame");
  await page.locator(".flame canvas").focus();
  await page.keyboard.press("ArrowUp"); // the root
  await page.keyboard.press("k");
  holds((await text(".selection")).includes("Prog.main"), await text(".selection"));
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForSelector("nav.focus .crumb");
  const focus = new URL(page.url()).searchParams.getAll("focus");
  equal(focus.length, 1);
  await page.waitForFunction(() => !document.querySelector("main .stale, main .busy"));
  const tree = json("tree", "--focus", focus[0], files[0]);
  holds((await text("nav.focus")).includes(`${tree.nodes.total[0]} B`), `${await text("nav.focus")} has not ${tree.nodes.total[0]} B`);
  await page.locator(".flame canvas").focus();
  await page.keyboard.press("Backspace");
  await page.waitForFunction(() => !document.querySelector("nav.focus"));
});
await check("flame graph: search tells its total; table twin", async () => {
  await open("?view=flame&search=List.map");
  // List.map under Work.run (16 B) and under main (32 B)
  holds((await text(".found")).includes("2 boxes match, 48 B"), await text(".found"));
  await page.getByRole("button", { name: "Table" }).click();
  await page.waitForSelector("[role=treegrid]");
  holds((await text("[role=treegrid] tbody")).includes("192 B"), "the twin has the root");
});
await check("the process: which part of resident memory grew, as at the command line", async () => {
  await open("?trace=3");
  const memory = json("memory", files[3]);
  equal(memory.grew, "heap");
  const card = page.locator(".card", { has: page.locator("table[aria-label='resident memory']") });
  holds((await card.innerText()).includes("Resident memory grew by 11.0 MB, and OCaml's heap by 8.00 MB."), await card.innerText());
  equal(await card.locator("tr.warn td").allInnerTexts(), ["OCaml's heap", "0 B", "4.00 MB", "8.00 MB"]);
  holds((await card.innerText()).includes("Readings are missing in one place"), "the gap");
});
await check("timeline: the system's curves have their own names among stacked ones", async () => {
  await open("?trace=3&view=timeline&series=domain");
  const box = await page.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50); // 270 ms
  const legend = async (name) => (await page.locator(".u-series", { hasText: name }).locator(".u-value").innerText()).trim();
  equal(await legend("resident (RSS)"), "20.0 MB");
  equal(await legend("OCaml's heap"), "4.00 MB");
  equal(await legend("native in use"), "11.0 MB");
  holds((await legend("domain 1")).endsWith(" B"), "domain 1");
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50); // 450 ms
  equal(await legend("resident (RSS)"), "15.0 MB");
  equal(await legend("OCaml's heap"), "16.0 MB");
});
await check("V3, V4: curves, wall clock, drag selects a range", async () => {
  await open("?view=timeline");
  const box = await page.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.2, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await page.waitForSelector(".range");
  await page.getByRole("button", { name: "Allocated in it" }).click();
  await page.waitForSelector(".chips li");
  holds(new URL(page.url()).searchParams.get("filter").startsWith("allocated in "), page.url());
  await page.waitForFunction(() => !document.querySelector("main .stale, main .busy"));
  // What is filtered stands before everything: two curves.
  equal(await page.locator("table[aria-label=curves] tbody tr").count(), 2);
  await page.locator("label.choice", { hasText: "wall clock" }).locator("select").selectOption("wall");
  holds(page.url().includes("wall=1"), "in the address");
});
for (const [id, filter] of [
  ["V6", "allocated <= 200us"],
  ["V7", "live at peak"],
  ["V7", "live at end"],
  ["V8", "collected in 0s..400us"],
  ["V8", "not collected"],
  ["V9", "size >= 4w"],
  ["V10", "lifetime <= 200us"],
  ["V11", 'inside "Work.run"'],
  ["V11", 'not inside "List.map"'],
  ["V11", "domain = 1"],
  ["V12", "source = minor"],
  ["V12", "promoted"],
  ["V13", 'hide "List.map"'],
])
  await check(`${id}: ${filter} gives the numbers of the command line`, async () => {
    await open(`?view=tables&filter=${encodeURIComponent(filter)}`);
    const rows = json("query", "--by", "function", "--filter", filter, files[0]).rows;
    const shown = await page.locator("table[aria-label='function table'] tbody tr").allInnerTexts();
    for (const row of rows) {
      const name = row.values[0].name;
      const line = shown.find((s) => s.includes(name));
      holds(line, `${name} is missing in ${JSON.stringify(shown)}`);
      holds(line.split("\t")[2].startsWith(`${row.estimates[0].value} B`), `${line}: itself is not ${row.estimates[0].value} B`);
    }
  });
await check("V14: a wrong filter is told with its place, and not applied; the builder", async () => {
  await open("");
  await page.fill("#filter", "size >= banana");
  await page.waitForSelector("#filter-error:not(:empty)");
  holds((await text("#filter-error")).includes("column 9"), await text("#filter-error"));
  holds(await page.getByRole("button", { name: "Apply" }).isDisabled(), "Apply is off");
  await page.fill("#filter", "promoted");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".chips li");
  equal(new URL(page.url()).searchParams.get("filter"), "promoted");
  await page.getByRole("button", { name: "Add…" }).click();
  await page.locator(".builder").getByRole("textbox").fill("Work.run");
  await page.locator(".builder button[type=submit]:not([disabled])").click();
  await page.waitForFunction(() => document.querySelectorAll(".chips li").length === 2);
  await page.getByRole("button", { name: "remove promoted" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".chips li").length === 1);
});
await check("V18: rows open to callers and callees", async () => {
  await open("?view=tables");
  const row = page.locator("table[aria-label='function table'] tbody tr", { hasText: "Work.run" }).first();
  await row.getByRole("button", { name: "open" }).click();
  await page.waitForSelector(".neighbours .steps li");
  await page.waitForFunction(() => document.querySelectorAll(".neighbours .steps").length === 2);
  const both = await text(".neighbours");
  holds(both.includes("Prog.main") && both.includes("List.map"), both);
});
await check("V19, V20: points of interest set the focus; it stays when the filter changes", async () => {
  await open("?view=points");
  await page.locator("ol.sites .link").first().click();
  await page.waitForSelector("nav.focus");
  const before = new URL(page.url()).searchParams.getAll("focus");
  await page.fill("#filter", "samples >= 1");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.search.includes("filter"));
  equal(new URL(page.url()).searchParams.getAll("focus"), before);
});
await check("S7, S8: domains are shown; equal names in two files are two", async () => {
  await open("?view=tables&by=domain");
  const rows = await page.locator("table tbody tr").allInnerTexts();
  equal(rows.length, 2);
  holds(rows[0].includes("domain 1") && rows[0].startsWith("112 B"), rows[0]);
});
await check("compare: the halves of a run", async () => {
  await open("?view=compare&filter=domain%20%3D%200&filterB=domain%20%3D%201");
  holds((await text("main p")).includes("A: 80 B") && (await text("main p")).includes("B: 112 B"), await text("main p"));
});
await check("several traces", async () => {
  await open("?trace=1");
  holds((await page.title()).includes("recursion.stm"), await page.title());
});
await check("hostile names stay text", async () => {
  for (const view of ["overview", "flame", "tables", "points", "source", "timeline"]) await open(`?trace=2&view=${view}`);
  equal(await page.locator("main img, main script, main iframe").count(), 0);
  const body = await page.locator("body").innerText();
  holds(!/[\u202e\u0000-\u0008]/.test(body), "controls or direction marks are on the page");
});
await check("reload keeps the view; 800x600 has no sideways scrolling", async () => {
  await page.setViewportSize({ width: 800, height: 600 });
  for (const view of ["overview", "timeline", "flame", "tables", "points", "source", "compare"]) {
    await open(`?view=${view}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    holds(over <= 0, `${view} is ${over} pixels too wide`);
  }
  await page.reload();
  await page.waitForSelector("main table");
  await page.setViewportSize({ width: 1440, height: 900 });
});
await check("accessible: axe finds nothing", async () => {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const view of ["overview", "timeline", "flame", "tables", "points", "source", "compare"]) {
      await open(`?view=${view}`);
      // The policy forbids script elements; evaluation by the debugger is exempt.
      await page.evaluate(axe);
      const result = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa"] }));
      holds(result.violations.length === 0, `${view} ${scheme}: ${result.violations.map((v) => `${v.id} ${v.nodes[0].html.slice(0, 120)} ${v.nodes[0].failureSummary}`).join("; ")}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
});
if (shots) {
  mkdirSync(shots, { recursive: true });
  for (const scheme of ["light", "dark"])
    for (const view of ["overview", "timeline", "flame", "tables", "points"]) {
      await page.emulateMedia({ colorScheme: scheme });
      await open(`?view=${view}`);
      await page.screenshot({ path: join(shots, `${view}-${scheme}.png`) });
    }
}
await check("no complaint in the console, no request to anybody else", async () => {
  equal(complaints, []);
  equal(outside, []);
});
await check("server gone, and back", async () => {
  await open("");
  const port = new URL(server.url).port;
  server.child.removeAllListeners("exit");
  const ended = new Promise((resolve) => server.child.on("exit", resolve));
  server.child.kill("SIGTERM");
  equal(await ended, 0);
  await page.waitForSelector(".sign.bad");
  const again = await serve(["--port", port, files[0]]);
  await page.goto(again.url);
  await page.waitForSelector(".card");
  again.child.removeAllListeners("exit");
  again.child.kill("SIGTERM");
});
await browser.close();
rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
