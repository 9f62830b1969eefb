// What the browser tests share: Debian's Chromium, pages that remember what went wrong on them.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { until } from '../blackbox/harness.mjs';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const launch = () => chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });

/** Runs `body` with a visitor's own browser profile; afterwards no page of it may have complained. */
export async function withVisitor(browser, options, body) {
  const { mayComplain, ...rest } = options;
  const context = await browser.newContext({ locale: 'en-US', ...rest });
  context.setDefaultTimeout(15_000);
  const complaints = [];
  const complain = (page, text) => complaints.push(`${page.url()}: ${text}`);
  context.on('page', (page) => {
    page.on('pageerror', (error) => complain(page, error.stack ?? String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error' && !mayComplain?.test(message.text())) complain(page, message.text());
    });
  });
  try {
    await body(context, await context.newPage());
  } finally {
    await context.close();
  }
  assert.deepEqual(complaints, [], 'no errors in the console');
}

/** Waits until the element shows a text that fits; gives the text. */
export async function shows(page, selector, wanted) {
  const element = page.locator(selector);
  let text;
  try {
    await until(async () => {
      if (!(await element.isVisible())) return false;
      text = (await element.innerText()).trim();
      return wanted.test(text);
    }, `${selector} showing ${wanted}`, 15_000);
  } catch (e) {
    throw new Error(`${e.message}; it shows ${JSON.stringify(text)} on ${page.url()}`);
  }
  return text;
}

/** The number the waiting page shows once the visitor is in line. */
export const place = async (page, number = '\\d+') => Number(await shows(page, '#qm-position', new RegExp(`^${number}$`)));

/** Waits until the page is at an address that fits. */
export const arrives = (page, test) => page.waitForURL((url) => test(url), { waitUntil: 'load' });
