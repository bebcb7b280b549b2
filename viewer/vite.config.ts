import { defineConfig } from "vite";

// One script, one style sheet, fixed names: they are embedded in the statmem binary.
export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]", inlineDynamicImports: true },
    },
  },
});
