// Builds the islands of the pages into rpc/pages/static/built, which is checked in: `make run` needs no Node.js.
import { readdirSync, readFileSync } from 'node:fs';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import type { Plugin } from 'vite';

// One entry for each src/NAME/main.ts: the template of a page asks for asset('NAME.js') and asset('NAME.css').
const entries = Object.fromEntries(
  readdirSync('src', { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && readdirSync(`src/${entry.name}`).includes('main.ts'))
    .map((entry) => [entry.name, `src/${entry.name}/main.ts`]),
);

// CodeMirror adds its styles with <style>, which the content policy forbids, except in a shadow root, where it uses
// constructed style sheets, which the policy allows. Use these everywhere.
const sheets: Plugin = {
  name: 'constructed-style-sheets',
  transform(code, id) {
    if (!id.includes('/style-mod/')) return null;
    const patched = code.replace('!root.head && root.adoptedStyleSheets', 'root.adoptedStyleSheets');
    if (patched === code) throw new Error(`${id} has changed: it no longer chooses between <style> and style sheets as expected`);
    return { code: patched, map: null };
  },
};

// The licences of all packages of which a built file contains something, as they require.
const licences: Plugin = {
  name: 'licences',
  generateBundle(_, bundle) {
    const folders = new Set<string>();
    for (const part of Object.values(bundle)) {
      for (const id of part.type === 'chunk' ? part.moduleIds : []) {
        const folder = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];
        if (folder !== undefined) folders.add(folder);
      }
    }
    const texts = [...folders].map((folder) => {
      const facts = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as Record<string, string>;
      const name = `${facts['name']} ${facts['version']} (${facts['license']})`;
      const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file));
      const parts = files.sort().map((file) => readFileSync(`${folder}/${file}`, 'utf8').trim());
      return `${name}\n${'='.repeat(name.length)}\n\n${parts.join('\n\n') || 'The package has no text of its licence.'}\n`;
    });
    this.emitFile({ type: 'asset', fileName: 'licenses.txt', source: texts.sort().join('\n\n') });
  },
};

export default defineConfig({
  plugins: [sheets, licences, svelte({ compilerOptions: { css: 'external' } })],
  base: './',
  build: {
    target: 'es2022',
    outDir: '../rpc/pages/static/built',
    emptyOutDir: true,
    assetsDir: '.',
    manifest: 'manifest.json',
    modulePreload: false, // its loader would insert elements at run time
    reportCompressedSize: false,
    rolldownOptions: {
      input: entries,
      output: {
        // Hashes in names, because modules import each other by name, and every file is cached for ever.
        entryFileNames: '[name]-[hash].js',
        chunkFileNames: '[name]-[hash].js',
        assetFileNames: '[name]-[hash][extname]',
      },
    },
  },
  test: { environment: 'happy-dom', include: ['tests/**/*.test.ts'] },
});
