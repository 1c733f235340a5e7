import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    // Cards are keyed by the name of their resource, so that the properties which they read once never change.
    warningFilter: (warning) => warning.code !== 'state_referenced_locally',
  },
};
