// A small shop that carries the tag: the other origin in the demonstration and in the browser tests.
//
//   node scripts/demo/shop.mjs --port 8090 --server http://127.0.0.1:8080 [--room demo]
//
// Prints one line when it listens; port 0 takes a free one. Imported, it only gives startShop.

import http from 'node:http';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const STYLE = `
  :root { color-scheme: light dark; }
  body { margin: 0; font: 1.05rem/1.6 system-ui, sans-serif; background: Canvas; color: CanvasText; }
  header, main, footer { max-width: 42rem; margin: 0 auto; padding: 1.25rem; }
  header { display: flex; gap: 1.25rem; align-items: baseline; }
  header strong { margin-right: auto; font-size: 1.2rem; }
  .card { border: 1px solid #8886; border-radius: .75rem; padding: 1rem 1.25rem; margin: 1rem 0; }
  .button { display: inline-block; padding: .6rem 1.2rem; border-radius: .5rem; text-decoration: none;
    background: #1f5fbf; color: #fff; }
  footer { opacity: .7; font-size: .9rem; }`;

const PAGES = {
  '/': {
    title: 'Lamps and little things',
    body: `<p>Anybody may look around here. Only the checkout is behind the waiting room.</p>
      <div class="card"><h2>Desk lamp</h2><p>Brass, one of forty.</p><a class="button" href="/checkout">Buy it</a></div>`,
  },
  '/checkout': {
    title: 'Checkout',
    body: `<p>It is your turn: you are past the waiting room.</p>
      <div class="card"><p>One desk lamp</p><a class="button" href="/checkout/thank-you">Pay</a></div>`,
  },
  '/checkout/thank-you': {
    title: 'Thank you',
    body: '<p>The lamp is yours. <a href="/">Back to the shop</a></p>',
  },
};

const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

function page({ title, body }, tag) {
  return `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${title} · Demo shop</title>
  ${tag}
  <link rel="icon" href="data:,">
  <style>${STYLE}
  </style>
</head>
<body>
  <header><strong>Demo shop</strong><a href="/">Shop</a><a href="/checkout">Checkout</a></header>
  <main><h1>${title}</h1>
    ${body}
  </main>
  <footer>A demonstration of Queue Manager. Nothing is sold here.</footer>
</body>
</html>
`;
}

/** Listens on loopback and gives {url, port, close}; `localhost`, so that no cookies mix with the queue's. */
export async function startShop({ port = 0, server, room = 'demo' }) {
  const tag = (origin) =>
    `<script async src="${escape(origin)}/snippet/qm.js" data-qm-server="${escape(origin)}" data-qm-room="${escape(room)}"></script>`;
  const listener = http.createServer((request, response) => {
    const found = PAGES[new URL(request.url, 'http://localhost').pathname];
    const body = page(found ?? { title: 'Not here', body: '<p><a href="/">Back to the shop</a></p>' }, tag(server));
    response.writeHead(found ? 200 : 404, {
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
    });
    response.end(body);
  });
  await new Promise((resolve, reject) => {
    listener.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  const taken = listener.address().port;
  const close = () => {
    listener.closeAllConnections();
    return new Promise((resolve) => listener.close(resolve));
  };
  return { url: `http://localhost:${taken}`, port: taken, close };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({
    options: { port: { type: 'string', default: '8090' }, server: { type: 'string' }, room: { type: 'string', default: 'demo' } },
  });
  if (!values.server) {
    console.error('usage: node scripts/demo/shop.mjs --server ORIGIN [--port 8090] [--room demo]');
    process.exit(2);
  }
  try {
    const shop = await startShop({ port: Number(values.port), server: values.server, room: values.room });
    console.log(`Demo shop on ${shop.url}`);
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => shop.close().then(() => process.exit(0)));
  } catch (e) {
    console.error(`The demo shop cannot listen on port ${values.port}: ${e.code ?? e.message}`);
    process.exit(1);
  }
}
