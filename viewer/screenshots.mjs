// The pictures of README and docs: node viewer/screenshots.mjs STATMEM TRACE FOLDER
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [statmem, trace, folder] = process.argv.slice(2);
const server = spawn(statmem, ["view", "--no-open", trace], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve) => {
  let text = "";
  server.stdout.on("data", (d) => {
    text += d;
    if (text.includes("\n")) resolve(text.trim());
  });
});
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const colorScheme of ["light", "dark"]) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme });
  const page = await context.newPage();
  await page.goto(url);
  for (const view of colorScheme === "light" ? ["overview", "flame", "timeline"] : ["flame"]) {
    await page.goto(`${new URL(url).origin}/?view=${view}${view === "timeline" ? "&series=domain" : ""}`);
    await page.waitForSelector("main :is(.card, .chart, canvas)");
    await page.waitForFunction(() => !document.querySelector("main .busy, main .stale"));
    await page.waitForTimeout(400);
    await page.screenshot({ path: join(folder, `${view}${colorScheme === "dark" ? "-dark" : ""}.png`) });
  }
  await context.close();
}
await browser.close();
server.kill("SIGTERM");
