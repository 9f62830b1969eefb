// The operator console: signs in, polls the room list, and sends what an operator decides.
// Every number on the page is one the server answered; nothing is filled in between answers.
// Pure functions are exported for the tests; importing this module outside a browser does nothing.

const API = '/api/v1/admin';
const POLL_MS = 2000;
const HEALTH_EVERY = 5;
const TIMEOUT_MS = 15000;
const WINDOW_MS = 10 * 60 * 1000;
const GAP_MS = 6000;
const STORE_KEY = 'qm_console';

/** Every text of the console. */
export const STR = {
  adminKey: 'Admin key', signIn: 'Sign in', signOut: 'Sign out',
  keyHint: 'The key stays in this tab and is forgotten when the tab is closed.', keyEmpty: 'Enter the admin key.',
  keyShape: 'An admin key holds only plain letters, digits and signs, without blanks.',
  keyRefused: 'This key is not accepted. Sign in again.',
  locked: (s) => `Too many failed sign-ins from this address. Try again in ${s === null ? 'a minute' : `${s} seconds`}.`,
  unreachable: 'The server does not answer.', unreadable: 'The server sent an answer that cannot be read.',
  serverSaid: (status) => `The server answered ${status}.`, retryIn: (s) => `Try again in ${s} seconds.`,
  staleSince: (at, why) => (at ? `${why} The numbers below are from ${at}.` : why), live: (at) => `Live, updated ${at}`,
  late: 'Not live', working: 'Sending…', health: 'Health', createRoom: 'Create a room', roomId: 'Room id', roomName: 'Name',
  rateLabel: 'Released per minute', targetUrl: 'Target URL', create: 'Create room',
  noRooms: 'No rooms yet. Create the first one above.', created: (id) => `Room ${id} is created.`,
  idTaken: (id) => `There is a room ${id} already.`, idMissing: 'Enter a room id.', badRate: 'Enter a number from 0.',
  badCount: 'Enter a whole number from 1.', badTicket: 'Enter a ticket number, a whole number from 1.',
  badTime: 'Enter a date and a time.', state: 'State of the room', stateActive: 'Active', statePaused: 'Paused',
  stateBypass: 'Bypass', states: { active: 'Active', paused: 'Paused', bypass: 'Bypass', scheduled: 'Scheduled' },
  stateSet: (state) => `The room is ${state}.`, rush: 'More arrive than are released', setRate: 'Set rate',
  rateSet: (n) => `The rate is ${n} a minute.`, flushLabel: 'Release now', flush: 'Release',
  flushed: (n) => `Released: ${n}.`, moreControls: 'Schedule, message, eject, purge, delete', opensAt: 'Opens at',
  setTime: 'Set opening time', clearTime: 'Clear opening time',
  zone: (zone) => `Your time zone: ${zone}. Clearing the time draws the pre-queue at once.`,
  opensSet: (at) => `Opens at ${at}.`, opensCleared: 'The opening time is cleared.', message: 'Message to those who wait',
  saveMessage: 'Save message', clearMessage: 'Clear message', messageSet: 'The message is shown on the waiting page.',
  messageCleared: 'The message is removed.', ticket: 'Ticket number', eject: 'Eject',
  ejectHint: 'Ends the place or pass of this ticket. The visitor may queue again at the back.',
  ejected: (n) => `Ticket ${n} is ejected.`, purge: 'Purge the queue…', delete: 'Delete the room…', cancel: 'Cancel',
  purgeTitle: (id) => `Purge the queue of ${id}`, purgeDo: 'Purge',
  purgeText: (n) => `${n} waiting visitors lose their place. Nobody is admitted. The room and its settings stay.`,
  deleteTitle: (id) => `Delete room ${id}`, deleteDo: 'Delete',
  deleteText: () => 'The room, its queue and its settings are gone. Pages that carry its tag then let everybody through.',
  typeId: (id) => `Type ${id} to confirm`, purged: (n) => `Purged: ${n}.`, deleted: (id) => `Room ${id} is deleted.`,
  install: 'Install', tag: 'Script tag, first in <head> of every page to protect', copy: 'Copy tag', copied: 'Copied.',
  copySelf: 'The tag is selected. Copy it with the keyboard.', page: (id) => `Waiting page /w/${id}`, waiting: 'waiting',
  preQueue: 'in pre-queue', joined: 'joined last minute', passedMin: 'passed last minute', passed: 'passed',
  sessions: 'open sessions', slots: 'slots used', oldest: 'oldest wait', estimate: 'wait for a newcomer',
  nextTicket: 'next ticket', rate: 'per minute', opens: 'opens in', rooms: 'rooms', none: 'none', noEstimate: 'no estimate',
  atLeast: (d) => `at least ${d}`, noLimit: 'no limit', sparkNone: 'Waiting over time: no sample yet.',
  spark: (now, top, since) => `Waiting over the last ${since}: now ${now}, highest ${top}.`,
  healthLine: (h, up) =>
    `Version ${h.version}, ${h.ready ? 'ready' : 'not ready'}${h.draining ? ', draining' : ''}, up ${up}, ` +
    `store ${h.store} and ${h.sidestore}.`,
  healthy: 'No warnings.', healthFailed: (why) => `Health cannot be read. ${why}`,
  unknownRoomChecks: 'Checks of rooms that do not exist (their pages are not protected)',
  refusedOriginChecks: 'Checks from sites the room does not allow (their pages are not protected)',
  refusedKeyChecks: 'Checks with a wrong public key (their pages are not protected)',
};

/** A number for reading: grouped, at most two decimals; anything else is a dash. */
export const number = (value) =>
  Number.isFinite(value) ? value.toLocaleString('en', { maximumFractionDigits: 2 }) : '–';

/** Seconds as the two largest units that matter. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return '–';
  const s = Math.max(0, Math.round(seconds));
  const pair = (a, unitA, b, unitB) => (b ? `${a} ${unitA} ${b} ${unitB}` : `${a} ${unitA}`);
  if (s < 60) return `${s} s`;
  if (s < 3600) return pair(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 86400) return pair(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min');
  return pair(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h');
}

/** The wait of a visitor who would join now. A null means that no honest number exists. */
export function estimate(room) {
  if (!Number.isFinite(room.estWaitSec)) return STR.noEstimate;
  if (room.estWaitFloor) return STR.atLeast(duration(room.estWaitSec));
  return room.estWaitSec === 0 ? STR.none : duration(room.estWaitSec);
}

/** True while a queueing room takes in more visitors a minute than it is set to release. */
export const isRush = (room) =>
  room.effectiveState !== 'bypass' && room.waiting > 0 && room.joinedLastMin > room.rate;

/** The script tag of a room. A room id cannot hold a character that needs escaping. */
export const tagFor = (origin, id) =>
  `<script async src="${origin}/snippet/qm.js" data-qm-server="${origin}" data-qm-room="${id}"></script>`;

/** Epoch ms as the value of a datetime-local field, in the zone of this device. */
export const toLocal = (ms) =>
  Number.isFinite(ms) ? new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 19) : '';

/** The value of a datetime-local field as epoch ms, or null when it is no time. */
export const fromLocal = (text) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) && Number.isFinite(Date.parse(text)) ? Date.parse(text) : null;

/** A typed number from 0, or null. */
export const parseRate = (text) => (/^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null);

/** A typed whole number from 1, or null. */
export function parseWhole(text) {
  const n = /^\s*\d+\s*$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(n) && n >= 1 ? n : null;
}

/** The branding to send so that only the message changes. The server stamps `messageAt` itself. */
export function withMessage(branding, message) {
  const { message: _old, messageAt: _at, ...rest } = branding ?? {};
  return message === '' ? rest : { ...rest, message };
}

/** Samples of the last ten minutes with a new one added. */
export const addSample = (samples, t, v) =>
  [...samples.filter((s) => s.t > t - WINDOW_MS && s.t < t), { t, v }];

/** The path of a sparkline. A pause between samples stays a hole in the line. */
export function sparkPath(samples, width, height, pad = 3) {
  if (samples.length === 0) return '';
  const end = samples[samples.length - 1].t;
  const top = Math.max(1, ...samples.map((s) => s.v));
  const round = (n) => Math.round(n * 10) / 10;
  const x = (s) => round(pad + (1 - (end - s.t) / WINDOW_MS) * (width - 2 * pad));
  const y = (s) => round(height - pad - (s.v / top) * (height - 2 * pad));
  return samples.map((s, i) => {
    const starts = i === 0 || s.t - samples[i - 1].t > GAP_MS;
    const alone = starts && (i === samples.length - 1 || samples[i + 1].t - s.t > GAP_MS);
    return `${starts ? 'M' : 'L'}${x(s)} ${y(s)}${alone ? 'h0' : ''}`;
  }).join('');
}

/** Counts by room, or by room and origin, as lines, largest first, and their sum. */
export function counts(map) {
  const lines = Object.entries(map ?? {}).flatMap(([room, value]) =>
    typeof value === 'number' ? [[room, value]] : Object.entries(value).map(([origin, n]) => [`${room}, ${origin}`, n]));
  lines.sort((a, b) => b[1] - a[1]);
  return { total: lines.reduce((sum, [, n]) => sum + n, 0), lines };
}

/** The whole seconds of a Retry-After header, or null. */
export const seconds = (text) => (/^\d+$/.test(text ?? '') ? Number(text) : null);

/** What to tell the operator about an answer that is no success. */
export function problem(status, body, wait) {
  if (status === 429 && body?.code === 'too_many_auth_failures') return STR.locked(wait);
  const text = typeof body?.error === 'string' && body.error ? body.error : STR.serverSaid(status);
  const full = typeof body?.code === 'string' && body.code !== text ? `${text} (${body.code})` : text;
  return wait === null ? full : `${full}${/[.!?]$/.test(full) ? '' : '.'} ${STR.retryIn(wait)}`;
}

/** The time to the next poll: two seconds, longer after failures, never before the server allows it. */
export function pollDelay(failures, retryAfterSeconds, random) {
  const backoff = failures === 0 ? POLL_MS : Math.min(15000, POLL_MS * 2 ** (failures - 1)) * (1 + random / 4);
  return Math.max(backoff, (retryAfterSeconds ?? 0) * 1000);
}

const post = (path, body, note) => ({ method: 'POST', path, body, note });

/** The controls of a room: from its fields, the path of the room and the room to a plan. */
const CONTROLS = {
  state: ({ choice }, at) =>
    post(`${at}/state`, { state: choice }, () => STR.stateSet(STR.states[choice].toLowerCase())),
  rate(fields, at) {
    const ratePerMinute = parseRate(fields.rate);
    if (ratePerMinute === null) return { problem: STR.badRate };
    return post(`${at}/rate`, { ratePerMinute }, () => STR.rateSet(number(ratePerMinute)));
  },
  flush(fields, at) {
    const count = parseWhole(fields.count);
    if (count === null) return { problem: STR.badCount };
    return post(`${at}/flush`, { count }, (answer) => STR.flushed(number(answer.released)));
  },
  schedule(fields, at) {
    if (fields.choice === 'clear') return post(`${at}/schedule`, { opensAt: null }, () => STR.opensCleared);
    const opensAt = fromLocal(fields.opensAt);
    if (opensAt === null) return { problem: STR.badTime };
    return post(`${at}/schedule`, { opensAt }, () => STR.opensSet(clock(opensAt, 'medium')));
  },
  message(fields, at, room) {
    const message = fields.choice === 'clear' ? '' : fields.message.trim();
    const body = { id: room.id, branding: withMessage(room.branding, message) };
    return post('/rooms', body, () => (message ? STR.messageSet : STR.messageCleared));
  },
  eject(fields, at) {
    const ticket = parseWhole(fields.ticket);
    if (ticket === null) return { problem: STR.badTicket };
    return post(`${at}/eject`, { ticket }, () => STR.ejected(ticket));
  },
  purge: (fields, at) => post(`${at}/purge`, {}, (answer) => STR.purged(number(answer.purged))),
  delete: (fields, at, room) => ({ method: 'DELETE', path: at, note: () => STR.deleted(room.id) }),
};

/** What a control sends: a request and the sentence for its success, or `{problem}`. */
export const plan = (act, fields, room) => CONTROLS[act](fields, `/rooms/${encodeURIComponent(room.id)}`, room);

/** What the create form sends. Fields left empty keep the server's defaults. */
export function planCreate(fields) {
  const id = fields.id.trim();
  if (!id) return { problem: STR.idMissing };
  const body = { id };
  if (fields.name.trim()) body.name = fields.name.trim();
  if (fields.rate.trim()) {
    body.ratePerMinute = parseRate(fields.rate);
    if (body.ratePerMinute === null) return { problem: STR.badRate };
  }
  if (fields.targetUrl.trim()) body.targetUrl = fields.targetUrl.trim();
  return post('/rooms', body, () => STR.created(id));
}

/** The figures of a room card, as [key, label, text]. */
export function figures(room, now) {
  const slots = room.maxConcurrent === null ? STR.noLimit : number(room.maxConcurrent);
  const list = [
    ['waiting', STR.waiting, number(room.waiting)], ['preQueue', STR.preQueue, number(room.preQueue)],
    ['joined', STR.joined, number(room.joinedLastMin)], ['passedMin', STR.passedMin, number(room.passedLastMin)],
    ['rate', STR.rate, number(room.rate)], ['estimate', STR.estimate, estimate(room)],
    ['oldest', STR.oldest, room.oldestWaitSec ? duration(room.oldestWaitSec) : STR.none],
    ['passed', STR.passed, number(room.passed)], ['sessions', STR.sessions, number(room.sessions)],
    ['slots', STR.slots, `${number(room.slotsUsed)} / ${slots}`], ['nextTicket', STR.nextTicket, number(room.nextTicket)],
  ];
  if (Number.isFinite(room.opensAt) && room.opensAt > now) list.push(['opens', STR.opens, duration((room.opensAt - now) / 1000)]);
  return list;
}

const clock = (ms, dateStyle) => new Intl.DateTimeFormat('en', { dateStyle, timeStyle: 'medium' }).format(new Date(ms));

// ---- from here on: the browser ----

let session = null; // Answers that arrive after signing out belong to an old object and are dropped.
let confirming = null;
const $ = (id) => document.getElementById(id);
const field = (root, name) => root.querySelector(`[data-f="${name}"]`);
const refusal = (text, status = 0, retryAfter = null) => Object.assign(new Error(text), { status, retryAfter });

/** One request to the admin API. Throws an error whose message is ready to show. */
async function call(key, method, path, body) {
  const headers = { Authorization: `Bearer ${key}`, Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let res, json;
  try {
    res = await fetch(API + path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    json = await res.json().catch(() => undefined);
  } catch {
    throw refusal(STR.unreachable);
  }
  if (res.ok && json) return json;
  if (res.ok) throw refusal(STR.unreadable, res.status);
  const wait = seconds(res.headers.get('Retry-After'));
  throw refusal(problem(res.status, json, wait), res.status, wait);
}

function say(node, text, isError = false) {
  node.classList.toggle('error', isError);
  if (node.textContent !== text) node.textContent = text;
}

/** The storage of this tab. It may be forbidden; then the key lives in memory only. */
function stored(use) {
  try {
    return use(sessionStorage);
  } catch {
    return null;
  }
}

/** Ends a session, if there is one, and takes everything it showed off the page. */
function clear(signedIn) {
  clearTimeout(session?.timer);
  session = null;
  if ($('confirm').open) $('confirm').close();
  for (const id of ['rooms', 'totals', 'counters', 'warnings']) $(id).replaceChildren();
  for (const id of ['health-line', 'connection', 'said', 'live']) say($(id), '');
  $('create-form').reset();
  $('console').hidden = !signedIn;
  $('sign-in').hidden = signedIn;
  $('empty').hidden = true;
}

function signOut(text = '') {
  clear(false);
  stored((tab) => tab.removeItem(STORE_KEY));
  say($('sign-in-result'), text, text !== '');
  $('key').focus();
}

/** Shows the console for a key. */
function open(key, viewOnly) {
  clear(true);
  session = {
    key, viewOnly, rooms: new Map(), samples: new Map(), now: null,
    changes: 0, failures: 0, polls: 0, timer: 0, running: null,
  };
  stored((tab) => tab.setItem(STORE_KEY, JSON.stringify({ key, viewOnly })));
  $('key').value = '';
  $('console').classList.toggle('view-only', viewOnly);
  return poll();
}

function trySignIn(event) {
  event.preventDefault();
  const key = $('key').value.trim();
  const result = $('sign-in-result');
  if (!key) return say(result, STR.keyEmpty, true);
  if (!/^[\x21-\x7e]+$/.test(key)) return say(result, STR.keyShape, true);
  return once(event.target, async () => {
    say(result, STR.working);
    try {
      await call(key, 'GET', '/rooms');
      say(result, '');
      await open(key, false);
    } catch (error) {
      say(result, error.status === 401 ? STR.keyRefused : error.message, true);
    }
  });
}

/** Reads the room list now, or joins the reading under way, and plans the next one. */
function poll() {
  const mine = session;
  clearTimeout(mine.timer);
  mine.running ??= pollOnce(mine).then((delay) => {
    mine.running = null;
    if (session === mine) mine.timer = setTimeout(poll, delay);
  });
  return mine.running;
}

async function pollOnce(mine) {
  const before = mine.changes;
  if (mine.polls++ % HEALTH_EVERY === 0) readHealth(mine);
  try {
    const list = await call(mine.key, 'GET', '/rooms');
    if (session !== mine) return 0;
    mine.failures = 0;
    // An answer that was on its way while the operator changed something may be older than the change.
    if (mine.changes !== before) return 0;
    show(mine, list);
    say($('connection'), '');
    return pollDelay(0, null, 0);
  } catch (error) {
    if (session !== mine) return 0;
    if (error.status === 401) return void signOut(STR.keyRefused);
    mine.failures += 1;
    say($('connection'), STR.staleSince(mine.now && clock(mine.now), error.message), true);
    say($('live'), STR.late, true);
    return pollDelay(mine.failures, error.retryAfter, Math.random());
  }
}

function show(mine, list) {
  const rooms = list.rooms;
  mine.now = list.now;
  mine.rooms = new Map(rooms.map((room) => [room.id, room]));
  for (const id of [...mine.samples.keys()]) if (!mine.rooms.has(id)) mine.samples.delete(id);
  for (const room of rooms) mine.samples.set(room.id, addSample(mine.samples.get(room.id) ?? [], list.now, room.waiting));
  $('console').classList.toggle('view-only', mine.viewOnly || rooms.some((room) => room.redacted));
  say($('live'), STR.live(clock(list.now)));
  $('empty').hidden = rooms.length > 0;
  const sum = (key) => number(rooms.reduce((n, room) => n + room[key], 0));
  const from = { waiting: 'waiting', preQueue: 'preQueue', joined: 'joinedLastMin', passedMin: 'passedLastMin' };
  const shown = Object.entries(from).map(([key, member]) => [key, STR[key], sum(member)]);
  setFigures($('totals'), [['rooms', STR.rooms, number(rooms.length)], ...shown]);
  const box = $('rooms');
  for (const card of [...box.children]) if (!mine.rooms.has(card.dataset.id)) card.remove();
  rooms.forEach((room, i) => {
    const card = [...box.children].find((c) => c.dataset.id === room.id) ?? newCard(room.id);
    // Moving a node drops the focus inside it, so move only what is out of place.
    if (box.children[i] !== card) box.insertBefore(card, box.children[i] ?? null);
    fill(mine, card, room);
  });
}

function setFigures(dl, list) {
  const kept = new Set(list.map(([key]) => key));
  for (const row of [...dl.children]) if (!kept.has(row.dataset.k)) row.remove();
  for (const [key, label, text] of list) {
    const row = [...dl.children].find((r) => r.dataset.k === key) ?? dl.appendChild(document.createElement('div'));
    row.dataset.k = key;
    if (!row.firstChild) row.append(document.createElement('dt'), document.createElement('dd'));
    say(row.firstChild, label);
    say(row.lastChild, text);
  }
}

function newCard(id) {
  const card = $('room-template').content.firstElementChild.cloneNode(true);
  card.dataset.id = id;
  translate(card);
  say(field(card, 'id'), id);
  say(field(card, 'zone'), STR.zone(Intl.DateTimeFormat().resolvedOptions().timeZone));
  card.querySelector('[name="tag"]').value = tagFor(location.origin, id);
  const link = field(card, 'page');
  link.href = `/w/${encodeURIComponent(id)}`;
  say(link, STR.page(id));
  return card;
}

/** Puts the answered value into a field, unless the operator is at work in it. */
function setInput(card, name, value) {
  const input = card.querySelector(`[name="${name}"]`);
  if (!input.dataset.dirty && document.activeElement !== input && input.value !== value) input.value = value;
}

function fill(mine, card, room) {
  say(field(card, 'name'), room.name);
  const badge = field(card, 'state');
  badge.dataset.state = room.effectiveState;
  say(badge, STR.states[room.effectiveState] ?? room.effectiveState);
  field(card, 'rush').hidden = !isRush(room);
  say(field(card, 'rush'), STR.rush);
  for (const button of card.querySelectorAll('[data-act="state"] button'))
    button.setAttribute('aria-pressed', String(button.value === room.state));
  setFigures(field(card, 'figures'), figures(room, mine.now));
  setInput(card, 'rate', String(room.rate));
  setInput(card, 'opensAt', toLocal(room.opensAt));
  setInput(card, 'message', room.branding?.message ?? '');
  const samples = mine.samples.get(room.id) ?? [];
  const top = Math.max(...samples.map((s) => s.v));
  const age = samples.length ? (samples.at(-1).t - samples[0].t) / 1000 : null;
  const text = age === null ? STR.sparkNone : STR.spark(number(samples.at(-1).v), number(top), duration(age));
  card.querySelector('svg').setAttribute('aria-label', text);
  card.querySelector('svg path').setAttribute('d', sparkPath(samples, 300, 56));
  say(field(card, 'spark'), text);
}

async function readHealth(mine) {
  try {
    const health = await call(mine.key, 'GET', '/health');
    if (session !== mine) return;
    say($('health-line'), STR.healthLine(health, duration(health.uptimeSec)));
    const warnings = (health.warnings ?? []).map((w) => (w.roomId ? `${w.roomId}: ${w.message}` : w.message));
    const texts = warnings.length ? warnings : [STR.healthy];
    const list = $('warnings');
    // A list that did not change is left alone, so that a screen reader does not read it again.
    if (texts.join('\n') !== [...list.children].map((li) => li.textContent).join('\n'))
      list.replaceChildren(...texts.map((text) => Object.assign(document.createElement('li'), { textContent: text })));
    const parts = ['unknownRoomChecks', 'refusedOriginChecks', 'refusedKeyChecks'].map((name) => {
      const { total, lines } = counts(health[name]);
      const shown = lines.slice(0, 20).map(([what, n]) => `${what}: ${number(n)}`);
      return { name, total, text: [number(total), ...shown].join(' · ') };
    });
    setFigures($('counters'), parts.map(({ name, text }) => [name, STR[name], text]));
    parts.forEach(({ total }, i) => $('counters').children[i].classList.toggle('raised', total > 0));
  } catch (error) {
    // The room list meets the same refusal and decides about signing out.
    if (session === mine) say($('health-line'), STR.healthFailed(error.message), true);
  }
}

/** Sends what a control planned and shows the outcome beside it. Returns the answer, or null. */
async function send(mine, planned, result) {
  if (planned.problem) return void say(result, planned.problem, true);
  mine.changes += 1;
  say(result, STR.working);
  try {
    const answer = await call(mine.key, planned.method, planned.path, planned.body);
    if (session !== mine) return null;
    say(result, planned.note(answer));
    return answer;
  } catch (error) {
    if (session === mine && error.status === 401) signOut(STR.keyRefused);
    else if (session === mine) say(result, error.message, true);
    return null;
  } finally {
    mine.changes += 1;
    if (session === mine) poll();
  }
}

/** Runs one job of a form at a time: a second press while the first is on its way does nothing. */
async function once(form, job) {
  if (form.dataset.busy) return;
  form.dataset.busy = '1';
  await job().finally(() => delete form.dataset.busy);
}

/** Reads the rooms as the server has them now, for a change that builds on what is there. */
const READ = { method: 'GET', path: '/rooms', note: () => STR.working };

function onRoomForm(event) {
  event.preventDefault();
  const form = event.target;
  const card = form.closest('article');
  const { act } = form.dataset;
  const result = form.querySelector('.result');
  if (act === 'copy') return copyTag(form.querySelector('[name="tag"]'), result);
  const mine = session;
  return once(form, async () => {
    const fields = { ...Object.fromEntries(new FormData(form)), choice: event.submitter?.value };
    let room = mine.rooms.get(card.dataset.id);
    if (act === 'message') {
      const list = await send(mine, READ, result);
      if (!list) return;
      room = list.rooms.find((r) => r.id === room.id) ?? room;
    }
    const answer = await send(mine, plan(act, fields, room), result);
    if (!answer) return;
    for (const input of form.querySelectorAll('input, textarea')) delete input.dataset.dirty;
    const now = answer.stats ?? answer.room ?? room;
    mine.rooms.set(now.id, now);
    fill(mine, card, now);
  });
}

async function copyTag(area, result) {
  area.select();
  // Without https there is no clipboard API; the older command may still work.
  const modern = await navigator.clipboard?.writeText(area.value).then(() => true, () => false);
  const done = modern || document.execCommand('copy');
  say(result, done ? STR.copied : STR.copySelf);
}

function onCreate(event) {
  event.preventDefault();
  const form = event.target;
  const result = form.querySelector('.result');
  const mine = session;
  once(form, async () => {
    const planned = planCreate(Object.fromEntries(new FormData(form)));
    if (planned.problem) return void say(result, planned.problem, true);
    // The route that creates also edits: a taken id would change the room that has it.
    const list = await send(mine, READ, result);
    const taken = list?.rooms.some((room) => room.id === planned.body.id);
    if (taken) say(result, STR.idTaken(planned.body.id), true);
    else if (list && (await send(mine, planned, result))) form.reset();
  });
}

function openConfirm(button) {
  const kind = button.dataset.open;
  const room = session.rooms.get(button.closest('article').dataset.id);
  confirming = { kind, room, result: button.closest('.row').querySelector('.result') };
  say($('confirm-title'), STR[`${kind}Title`](room.id));
  say($('confirm-text'), STR[`${kind}Text`](number(room.waiting + room.preQueue)));
  say($('confirm-label'), STR.typeId(room.id));
  say($('confirm-do'), STR[`${kind}Do`]);
  say($('confirm').querySelector('.result'), '');
  $('confirm-id').value = '';
  $('confirm-do').disabled = true;
  $('confirm').showModal();
  $('confirm-id').focus();
}

function onConfirm(event) {
  event.preventDefault();
  const [job, mine] = [confirming, session];
  if (!job || $('confirm-id').value !== job.room.id) return;
  once(event.target, async () => {
    const planned = plan(job.kind, {}, job.room);
    const answer = await send(mine, planned, $('confirm').querySelector('.result'));
    if (!answer) return;
    if (confirming === job) $('confirm').close();
    say(job.kind === 'purge' ? job.result : $('said'), planned.note(answer));
    if (job.kind === 'delete') $('create').querySelector('summary').focus();
  });
}

function translate(root) {
  for (const node of root.querySelectorAll('[data-t]')) node.textContent = STR[node.dataset.t];
  for (const node of root.querySelectorAll('[data-label]')) node.setAttribute('aria-label', STR[node.dataset.label]);
}

/** A shared view link carries its token in the fragment; it is taken and removed from the address bar. */
function takeMonitorLink() {
  const token = /^#monitor=([\x21-\x7e]+)$/.exec(location.hash)?.[1];
  if (token) history.replaceState(null, '', location.pathname);
  if (token) open(token, true);
  return Boolean(token);
}

function start() {
  translate(document);
  $('sign-in-form').addEventListener('submit', trySignIn);
  $('sign-out').addEventListener('click', () => signOut());
  $('create-form').addEventListener('submit', onCreate);
  $('rooms').addEventListener('submit', onRoomForm);
  $('rooms').addEventListener('input', (event) => { event.target.dataset.dirty = '1'; });
  $('rooms').addEventListener('click', (event) => {
    const button = event.target.closest('[data-open]');
    if (button) openConfirm(button);
  });
  $('confirm').querySelector('form').addEventListener('submit', onConfirm);
  $('confirm-id').addEventListener('input', () => {
    $('confirm-do').disabled = $('confirm-id').value !== confirming?.room.id;
  });
  $('confirm-cancel').addEventListener('click', () => $('confirm').close());
  $('confirm').addEventListener('close', () => { confirming = null; });
  addEventListener('hashchange', takeMonitorLink);
  if (takeMonitorLink()) return;
  const kept = stored((tab) => JSON.parse(tab.getItem(STORE_KEY)));
  if (typeof kept?.key === 'string') open(kept.key, kept.viewOnly === true);
  else signOut();
}

if (typeof document !== 'undefined') start();
