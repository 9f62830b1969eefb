// A waiting room in front of anything behind nginx, in njs (nginx JavaScript 0.7.9 or newer). See gate.conf for the
// configuration that goes with it. The settings come from the environment of nginx: QM_SERVER, QM_ROOM,
// QM_PUBLIC_API_KEY and QM_SITE, the origin visitors see.

const server = (process.env.QM_SERVER || '').replace(/\/$/, '');
const room = process.env.QM_ROOM || '';
const key = (process.env.QM_PUBLIC_API_KEY || '').trim();
const site = process.env.QM_SITE || '';

function usable(text) {
    return text && text.length <= 1024 && /^[\w-]+\.[\w-]+$/.test(text) ? text : '';
}

function decoded(text) {
    try {
        return decodeURIComponent(text.replace(/\+/g, ' '));
    } catch (e) {
        return text;
    }
}

function encoded(text) {
    return text.replace(/[^\x21-\x7e]|["<>\\]/g, function (c) { return encodeURIComponent(c); });
}

// The page's address without qm_token, and the tokens taken off.
function page(r) {
    const cut = r.variables.request_uri.split('#')[0];
    const at = cut.indexOf('?');
    const path = (at < 0 ? cut : cut.slice(0, at)).replace(/^https?:\/\/[^\/]*/i, '') || '/';
    const tokens = [];
    const rest = (at < 0 ? '' : cut.slice(at + 1)).split('&').filter(function (pair) {
        const half = pair.indexOf('=');
        const name = half < 0 ? pair : pair.slice(0, half);
        if (decoded(name) !== 'qm_token') return pair !== '';
        tokens.push(half < 0 ? '' : decoded(pair.slice(half + 1)));
        return false;
    });
    return { url: site + encoded(path + (rest.length ? '?' + rest.join('&') : '')), tokens: tokens };
}

function stored(r) {
    const found = (r.headersIn.Cookie || '').split(';').map(function (pair) {
        const half = pair.indexOf('=');
        return half > 0 && pair.slice(0, half).trim() === 'qm_' + room ? usable(pair.slice(half + 1).trim().replace(/^"(.*)"$/, '$1')) : '';
    }).filter(function (value) { return value; });
    return found[0] || '';
}

function cookie(value, age) {
    return 'qm_' + room + '=' + value + '; Max-Age=' + age + '; Path=/; HttpOnly; SameSite=Lax' + (site.startsWith('https:') ? '; Secure' : '');
}

// Only the configured server is a place to send anybody to.
function waiting(named, url) {
    let to = server + '/w/' + room;
    if (typeof named === 'string') {
        const full = /^\/[^\/\\]/.test(named) ? server + named : named;
        if (full.startsWith(server + '/') && /^[\x21-\x7e]*$/.test(full)) to = full;
    }
    const back = encodeURIComponent(url);
    return back.length > 3500 ? to : to + (to.indexOf('?') < 0 ? '?' : '&') + 'qm_return=' + back;
}

// One check: the answer, or {busy} or {failover}. js_fetch_timeout ends it; no timer of ours could, since nginx sends
// nothing while a fetch is under way.
async function ask(r, query) {
    const began = Date.now();
    let reply = null;
    let text = null;
    try {
        const request = { headers: { Authorization: 'Bearer ' + key }, max_response_body_size: 65536 };
        reply = await ngx.fetch(server + '/api/v1/check?' + query, request);
        text = await reply.text();
    } catch (e) {
        if (!reply || reply.status === 200) return { failover: Date.now() - began > 1900 ? 'timeout' : 'unreachable' };
    }
    let body = null;
    try {
        body = JSON.parse(text);
    } catch (e) {
        body = null;
    }
    body = body || {};
    if (reply.status === 429 || reply.status === 400 || reply.status === 413 || reply.status === 414 || body.code === 'server_saturated') return { busy: true };
    if (reply.status === 401 || reply.status === 403) r.error('Queue Manager: ' + reply.status + ', the key is wrong: room ' + room + ' is UNPROTECTED');
    if (reply.status !== 200) return { failover: 'http-' + reply.status };
    return body.action === 'pass' || body.action === 'queue' ? body : { failover: 'invalid-response' };
}

function serve(r, failover, setCookie) {
    r.variables.qm_failover = failover;
    r.variables.qm_cookie = setCookie;
    r.variables.qm_cache = failover ? 'private, no-store' : 'private, no-cache';
    r.internalRedirect('@site');
}

function redirect(r, to, setCookie) {
    if (setCookie) r.headersOut['Set-Cookie'] = setCookie;
    r.headersOut['Cache-Control'] = 'no-store';
    r.headersOut.Location = to;
    r.return(302);
}

async function gate(r) {
    if (!server || !room || !key || !site) {
        r.error('Queue Manager: QM_SERVER, QM_ROOM, QM_PUBLIC_API_KEY and QM_SITE must be set: UNPROTECTED');
        return serve(r, 'unreachable', '');
    }
    const here = page(r);
    const brought = here.tokens.map(usable).filter(function (token) { return token; })[0] || '';
    const held = stored(r);
    const purpose = (r.headersIn['Sec-Purpose'] || '') + (r.headersIn.Purpose || '');
    if (brought && (r.method === 'HEAD' || /prefetch/i.test(purpose))) {
        r.headersOut['Cache-Control'] = 'no-store';
        return r.return(503);
    }
    const shown = [brought, held].filter(function (token, i) { return token && (i === 0 || token !== brought); });
    if (!shown.length) shown.push('');
    let answer = {};
    let clear = false;
    for (let i = 0; i < shown.length; i++) {
        const token = shown[i];
        const agent = (r.headersIn['User-Agent'] || '').trim();
        let query = 'roomId=' + room + '&ip=' + encodeURIComponent(r.remoteAddress) + '&agent=' + encodeURIComponent(Buffer.from(agent).slice(0, 256).toString());
        if (token) query += '&token=' + token;
        if (encodeURIComponent(here.url).length <= 2000) query += '&url=' + encodeURIComponent(here.url);
        answer = await ask(r, query);
        if (answer.failover) return serve(r, answer.failover, '');
        if (answer.action === 'pass') {
            const set = token && token === brought ? cookie(token, 86400) : '';
            if (here.tokens.length && r.method === 'GET') return redirect(r, here.url, set);
            return serve(r, '', set);
        }
        if (answer.busy) return redirect(r, waiting(null, here.url), '');
        clear = clear || (answer.clearToken === true && token !== '' && token === held);
    }
    return redirect(r, waiting(answer.waitingRoomUrl, here.url), clear ? cookie('', 0) : '');
}

export default { gate };
