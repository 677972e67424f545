/** Built into dist/, which the service reads at its start. Nothing is inlined: the pages' policy allows no inline script. */
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react(), tailwind()],
  build: { assetsInlineLimit: 0, modulePreload: { polyfill: false }, target: 'es2023' },
  // For work on the pages: npm run dev --workspace dashboard, beside a running service.
  server: { proxy: { '/v1': 'http://localhost:3025', '/dashboard/api': 'http://localhost:3025' } },
})
