/** Built into dist/, which the service reads at its start. Nothing is inlined: the pages' policy allows no inline script. */
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const sharedParts =
  /src\/parts\/(action-dialogs|data-table|dialog|form-controls|menu|paged-lists|time-and-copy|toast|url-params|webhook-state|csv|file-transfer)\.tsx?$/

export default defineConfig({
  plugins: [react(), tailwind()],
  build: {
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    // The parts that most pages share in one file: fewer requests for about the same octets.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'parts', test: sharedParts }] } } },
  },
  // For work on the pages: npm run dev --workspace dashboard, beside a running service.
  server: { proxy: { '/v1': 'http://localhost:3025', '/dashboard/api': 'http://localhost:3025' } },
})
