// Loads a DHAT file by valgrind's own dh_view.js, without a browser, and prints what its root adds up to.
// Usage: node dh_view.mjs DH_VIEW_JS FILE
import { readFileSync } from 'node:fs';
import vm from 'node:vm';

const [script, file] = process.argv.slice(2);
const ask = `
gData = JSON.parse(file);
gSelect = {childNodes: [{}], selectedIndex: 0};
buildTree();
print(JSON.stringify({total: gRoot._totalBytes, blocks: gRoot._totalBlocks, peak: gRoot._atTGmaxBytes,
                      end: gRoot._atTEndBytes, kids: gRoot._kids ? gRoot._kids.length : 0}));`;
const page = new Proxy(function () {}, { get: () => page, set: () => true, apply: () => page });
const context = { document: page, window: {}, print: console.log, file: readFileSync(file, 'utf8') };
vm.runInNewContext(readFileSync(script, 'utf8') + ask, context);
